// Reads the tracker's API. Nothing is asked while the page is hidden, so a forgotten tab costs nothing.

import { useEffect, useRef, useState } from "./vendor/htm-preact.js";

const API = "/api/v1";
const TOKEN_KEY = "heron-tracker-token";
export const TOKEN_REFUSED = "heron-token-refused"; // an event of the window
const SILENT_MS = 20_000; // the tracker sends at least a comment every 15 s

export const PERIOD_S = Number(document.documentElement.dataset.periodS) || 1;
export const LOGS_SHOWN = document.documentElement.dataset.logs === "yes";
export const TUPLES_SHOWN = document.documentElement.dataset.tuples === "yes";
export const ACTIONS_ALLOWED = document.documentElement.dataset.actions === "yes";
export const EXPLAINS = document.documentElement.dataset.explain === "yes";
export const OF_RUN = document.documentElement.dataset.run === "yes"; // the server ends with its run
export const NEEDS_TOKEN = document.documentElement.dataset.token === "yes";

export class ApiError extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

// The token stays in this tab: never in a URL, and gone when the tab is closed.
export function hasToken() {
  return !NEEDS_TOKEN || Boolean(sessionStorage.getItem(TOKEN_KEY));
}

export function setToken(text) {
  sessionStorage.setItem(TOKEN_KEY, text);
}

export function forgetToken() {
  sessionStorage.removeItem(TOKEN_KEY);
}

export function placeOf(cluster, topology) {
  return `/clusters/${encodeURIComponent(cluster)}/topologies/${encodeURIComponent(topology)}`;
}

async function request(path, signal, options = {}) {
  const token = sessionStorage.getItem(TOKEN_KEY);
  const headers = { ...options.headers, ...(token ? { authorization: `Bearer ${token}` } : {}) };
  let response;
  try {
    response = await fetch(API + path, { ...options, headers, signal, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "the server of these pages does not answer");
  }
  if (response.ok) return response;
  if (response.status === 401 && NEEDS_TOKEN) {
    forgetToken();
    dispatchEvent(new Event(TOKEN_REFUSED));
  }
  let detail = response.statusText;
  try {
    detail = (await response.json()).detail;
  } catch {
    // a proxy has answered, with something else than a problem document
  }
  throw new ApiError(response.status, detail);
}

export async function read(path, signal) {
  return (await request(path, signal)).json();
}

// The bytes of a file, which a browser keeps on its disk if they are many.
export async function readFile(path) {
  return (await request(path)).blob();
}

export async function send(path, document) {
  const options = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(document) };
  return (await request(path, undefined, options)).json();
}

// All items of a path that answers in pages.
export async function readAll(path, signal) {
  const items = [];
  let answer;
  let offset = 0;
  do {
    answer = await read(`${path}${path.includes("?") ? "&" : "?"}limit=1000&offset=${offset}`, signal);
    items.push(...answer.items);
    offset = answer.next_offset;
  } while (offset !== null);
  return { ...answer, items };
}

// What a view knows: the newest answer, when it came, and why there is no newer one.
const NOTHING = { data: null, at: 0, problem: null };

// Asks again every `periodS` seconds, and at once when a dependency changes. `ask` is async (signal) => data.
export function usePolled(ask, periodS, dependencies) {
  const [state, setState] = useState(NOTHING);
  const visible = useVisible();
  useEffect(() => setState(NOTHING), dependencies);
  useEffect(() => {
    if (!visible) return undefined;
    const control = new AbortController();
    let timer = 0;
    async function turn() {
      try {
        const data = await ask(control.signal);
        if (!control.signal.aborted) setState({ data, at: performance.now(), problem: null });
      } catch (error) {
        if (!control.signal.aborted) setState((former) => ({ ...former, problem: error }));
      }
      if (!control.signal.aborted) timer = setTimeout(turn, periodS * 1000);
    }
    turn();
    return () => {
      control.abort();
      clearTimeout(timer);
    };
  }, [...dependencies, visible]);
  return state;
}

// The live status of a topology. EventSource cannot send a token, so the events are read from a fetch.
export function useLive(cluster, topology) {
  const [state, setState] = useState(NOTHING);
  const visible = useVisible();
  useEffect(() => setState(NOTHING), [cluster, topology]);
  useEffect(() => {
    if (!visible) return undefined;
    const control = new AbortController();
    let timer = 0;
    function fail(error) {
      if (control.signal.aborted) return;
      setState((former) => ({ ...former, problem: error }));
      timer = setTimeout(turn, PERIOD_S * 1000);
    }
    function turn() {
      follow(`${placeOf(cluster, topology)}/live`, control.signal, (data) =>
        setState({ data, at: performance.now(), problem: null }),
      ).then(() => fail(new ApiError(404, `cluster ${cluster} has no topology ${topology} any more`)), fail);
    }
    turn();
    return () => {
      control.abort();
      clearTimeout(timer);
    };
  }, [cluster, topology, visible]);
  return state;
}

async function follow(path, outer, onTopology) {
  const inner = new AbortController();
  const stop = () => inner.abort();
  outer.addEventListener("abort", stop);
  let silence = setTimeout(stop, SILENT_MS);
  try {
    const response = await request(path, inner.signal);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new ApiError(0, "the server of these pages has ended");
      clearTimeout(silence);
      silence = setTimeout(stop, SILENT_MS);
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const text of events) {
        const event = parsed(text);
        if (event.event === "gone") return;
        if (event.event === "topology") onTopology(JSON.parse(event.data));
      }
    }
  } catch (error) {
    if (error instanceof ApiError || outer.aborted) throw error;
    throw new ApiError(0, "the server of these pages does not answer");
  } finally {
    clearTimeout(silence);
    outer.removeEventListener("abort", stop);
    inner.abort();
  }
}

function parsed(text) {
  const fields = {};
  for (const line of text.split("\n")) {
    const at = line.indexOf(": ");
    if (at > 0) fields[line.slice(0, at)] = line.slice(at + 2);
  }
  return fields;
}

function useVisible() {
  const [visible, setVisible] = useState(!document.hidden);
  useEffect(() => {
    const change = () => setVisible(!document.hidden);
    document.addEventListener("visibilitychange", change);
    return () => document.removeEventListener("visibilitychange", change);
  }, []);
  return visible;
}

// Seconds since an answer came; it makes the view draw again every second.
export function useSeconds(at) {
  const [now, setNow] = useState(performance.now());
  const timer = useRef(0);
  useEffect(() => {
    timer.current = setInterval(() => setNow(performance.now()), 1000);
    return () => clearInterval(timer.current);
  }, []);
  return at ? Math.max(0, (now - at) / 1000) : 0;
}

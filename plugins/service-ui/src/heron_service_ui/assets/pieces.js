// Pieces that several views share.

import { html, plain } from "./html.js";
import * as format from "./formats.js";
import { OF_RUN, PERIOD_S, useSeconds } from "./tracker_api.js";

const ENDED = new Set(["finished", "failed", "killed"]);

export function hasEnded(state) {
  return ENDED.has(state);
}

// The path of a view. Every part is encoded, so a name cannot leave its place.
export function viewPath(cluster, topology, ...parts) {
  return `/ui/${[cluster, topology, ...parts].map((part) => encodeURIComponent(String(part))).join("/")}`;
}

export function withQuery(path, values) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value) query.set(name, value);
  return query.size ? `${path}?${query}` : path;
}

// Whether values are older than two periods, counted from when they were true.
export function isOld(ageS, sinceS) {
  return ageS + sinceS > 2 * PERIOD_S + 1; // an answer itself takes up to a second on a busy machine
}

// An old state may have changed since. A topology in trouble is not green, whatever its state is.
export function State({ state, old = false, trouble = false }) {
  return old ? html`<span class="state">was ${state}</span>` : html`<span class=${`state state-${state}${trouble ? " troubled" : ""}`}>${state}</span>`;
}

// How old the values of a view are, and why there are no newer ones. `polled` is what a hook of tracker_api returns.
// The element is always there: a screen reader announces what changes in it, and Preact keeps the order of its siblings.
export function Freshness({ polled, ended, wanted }) {
  const since = useSeconds(polled.at);
  const [text, bad, reason] = freshness(polled, ended, wanted, since);
  return html`<div role="status">
    ${text && html`<div class=${bad ? "notice bad" : "notice"}>${text}${reason && html`<details><summary>Reason</summary><p>${reason}</p></details>`}</div>`}
  </div>`;
}

function freshness(polled, ended, wanted, since) {
  if (!polled.data) return polled.problem ? [polled.problem.message, true] : [`waiting for ${wanted}`, false];
  if (ended) return ["It has ended: these are its last values.", false];
  const age = (polled.data.age_s || 0) + since;
  if (!polled.problem && !isOld(polled.data.age_s || 0, since)) return ["", false];
  if (OF_RUN && polled.problem && !polled.problem.status)
    return [`The run has ended, or its page has failed: ${polled.problem.message}. These values are ${format.duration(age)} old.`, true];
  if (polled.problem) return [`These values are ${format.duration(age)} old: ${polled.problem.message}`, true];
  const moment = format.moment(Date.now() / 1000 - age);
  return [`These values are of ${moment}, ${format.duration(age)} ago. Newer ones could not be read since.`, true, polled.data.error];
}

export function useOld(polled) {
  const since = useSeconds(polled.at);
  return !polled.data || Boolean(polled.problem && since > PERIOD_S * 2) || isOld(polled.data.age_s || 0, since);
}

// The view of what a sentence concerns: a task, a component, the containers or the checkpoints; "" for the topology.
export function concernedPath(cluster, topology, { kind, component, task_id: task, container_id: container }) {
  if (kind === "checkpoint") return viewPath(cluster, topology, "checkpoints");
  if (task) return viewPath(cluster, topology, "task", task);
  if (component) return withQuery(viewPath(cluster, topology, "tasks"), { component });
  return container ? viewPath(cluster, topology, "containers") : "";
}

// What explains the trouble of a task: the line in which its thread is, or what its memory holds.
const STEPS = {
  ...Object.fromEntries(["back-pressure", "behind", "long-call"].map((kind) => [kind, ["stack", "Show its line"]])),
  memory: ["memory", "Look at its memory"],
};

// A trouble as the tracker tells it, with the way to what it concerns.
export function Trouble({ cluster, topology, trouble }) {
  const path = concernedPath(cluster, topology, trouble);
  const [part, step] = STEPS[trouble.kind] || [];
  return html`${path ? html`<a href=${path}>${trouble.text}</a>` : trouble.text}
    ${step && html` <a class="step" href=${viewPath(cluster, topology, "task", trouble.task_id, part)} aria-label=${`${step}, task ${trouble.task_id}`}>${step}</a>`}`;
}

// The items have no keys: a number in a text changes every second, and a link must not go away under the mouse.
export function Troubles({ cluster, topology, troubles }) {
  return html`<ul class="troubles">
    ${troubles.map((each) => html`<li><${Trouble} cluster=${cluster} topology=${topology} trouble=${each} /></li>`)}
  </ul>`;
}

// A share from 0 to 1 as one of six shades; null has none.
export function heat(share) {
  if (share === null || share === undefined || !Number.isFinite(share)) return "";
  return `heat-${Math.min(5, Math.max(0, Math.floor(share * 6)))}`;
}

// The part of the busy time that is a reason to look. A spout that is blocked mostly waits for its source, or for the
// time of its next tuple; a bolt that is blocked holds its tuples up.
export function strain({ kind }, busy, time) {
  return busy === null || kind !== "spout" ? busy : busy - (time["user-blocked"] || 0);
}

// How much worse a value is than what is usual, from 0 for one that is not to 0.99 for four times of it. What is below
// `least` is no difference worth a word.
export function worse(value, usual, least = 0) {
  const base = Math.max(usual, least);
  return base > 0 && value > base ? Math.min(0.99, Math.log2(value / base) / 2) : 0;
}

// A line without axes. Its text says what it shows, for people who do not see it.
export function Sparkline({ values, label }) {
  const [width, height] = [120, 28];
  if (values.length < 2) return html`<span class="none" aria-label=${`${label}: no history yet`}>–</span>`;
  const most = Math.max(...values, 1e-9);
  const step = width / (values.length - 1);
  const points = values.map((value, at) => `${(at * step).toFixed(1)},${(height - 2 - (value / most) * (height - 4)).toFixed(1)}`);
  return html`<svg class="sparkline" width=${width} height=${height} role="img" aria-label=${label}>
    <polyline points=${points.join(" ")} />
  </svg>`;
}

// A wide table scrolls by itself, also with the keyboard.
export function Scrolled({ label, children }) {
  return html`<div class="scrolled" role="region" aria-label=${label} tabindex="0">${children}</div>`;
}

// The end of a path; the whole one is its title.
export function shortPath(file) {
  const parts = file.split("/");
  return parts.length > 3 ? `…/${parts.slice(-2).join("/")}` : file;
}

export function Choice({ label, value, values, onChange }) {
  return html`<label class="choice">
    ${label}
    <select value=${value} onChange=${(event) => onChange(event.currentTarget.value)}>
      ${values.map(([key, text]) => html`<option key=${key} value=${key} selected=${key === value}>${text}</option>`)}
    </select>
  </label>`;
}

// Saves what `content` returns as a file; the token of the page cannot be in a link to the API. Somebody may show the file
// in a terminal, so it has a sign in place of what a terminal obeys.
export function SaveButton({ name, text, content }) {
  return html`<button type="button" onClick=${() => save(name, new Blob([plain(content())]))}>${text}</button>`;
}

// Lets the browser keep a file of that name.
export function save(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

// One task: its figures, all its metrics, the line in which each of its threads is, and its logs.

import { useEffect, useRef, useState } from "./vendor/htm-preact.js";
import { html } from "./html.js";
import * as format from "./formats.js";
import { Inside } from "./inside_view.js";
import { Logs, NoLogs } from "./logs_view.js";
import { MetricsTable } from "./metrics_table.js";
import { Freshness, Scrolled, shortPath, State, viewPath, withQuery } from "./pieces.js";
import { LOGS_SHOWN, PERIOD_S, placeOf, read, readAll, usePolled } from "./tracker_api.js";

// The uses of a task's time, as the metric task-time-s names them.
const USES = {
  "user-cpu": "runs your code",
  "user-blocked": "in your code, blocked: it sleeps, or waits for a service, a lock or a processor",
  engine: "engine: decodes, encodes",
  input: "waits for tuples",
  room: "waits for room in its output",
  throttled: "held back by back pressure",
  acks: "waits for acks",
  paused: "paused, or not in use",
};
const ROLES = { task: "runs the component", gateway: "serves the sockets" };

export function TaskView({ cluster, topology, task, part, ended, old, query, go }) {
  const place = placeOf(cluster, topology);
  const wanted = Number(task);
  const valid = /^[1-9]\d{0,8}$/.test(task);
  const rows = usePolled((signal) => readAll(`${place}/tasks`, signal), PERIOD_S, [place]);
  if (!valid) return html`<p>${task} is not the number of a task.</p>`;
  if (!rows.data) return html`<${Freshness} polled=${rows} wanted="the task" />`;
  const row = rows.data.items.find((each) => each.task_id === wanted);
  if (!row) return html`<p class="notice" role="status">There is no task ${task}.</p>`;
  const logs = viewPath(cluster, topology, "task", task, "logs");
  return html`
    <h2>${row.component}/${row.task_id} <${State} state=${row.state} old=${old || ended} /></h2>
    <dl class="facts">
      <div><dt>container</dt><dd>${row.container_id}</dd></div>
      <div><dt>host</dt><dd>${row.host || "–"}</dd></div>
      <div><dt>process</dt><dd>${row.pid || "–"}</dd></div>
      <div><dt>tuples</dt><dd>${format.rate(row.rate_per_s)}</dd></div>
      <div><dt>busy</dt><dd>${format.percent(row.busy)}</dd></div>
      <div title="Bytes that wait for it: in its process, and in stream managers. The metrics below have the queue of its process alone."><dt>queue</dt><dd>${format.bytes(row.queue_bytes)}</dd></div>
      <div><dt>p50 time</dt><dd>${format.latency(row.latency_p50_s)}</dd></div>
      <div><dt>p99 time</dt><dd>${format.latency(row.latency_p99_s)}</dd></div>
      <div><dt>cores</dt><dd>${row.cores === null ? "–" : row.cores.toFixed(2)}</dd></div>
      <div><dt>memory</dt><dd>${format.bytes(row.resident_bytes)}</dd></div>
      <div><dt>restarts</dt><dd>${row.restarts}</dd></div>
    </dl>
    ${(row.culprit || row.long_call || row.last_error) &&
    html`<ul class="troubles">
      ${row.culprit && html`<li>It holds the spouts back: ${row.culprit}</li>`}
      ${row.long_call && html`<li>It has been in one call for long: ${row.long_call}</li>`}
      ${row.last_error && html`<li>Its last error: ${row.last_error}</li>`}
    </ul>`}
    <${Time} time=${row.time} />
    ${!ended && html`<${Stack} place=${place} topology=${topology} task=${task} visit=${part === "stack" && query} />`}
    ${!ended && html`<${Inside} place=${place} topology=${topology} row=${row} part=${part} visit=${query} />`}
    <h3>Logs</h3>
    ${part === "logs" && LOGS_SHOWN
      ? html`<${Logs} of=${`task ${task}`} files=${withQuery(`${place}/log-files`, { task })} path=${`${place}/tasks/${task}/logs`} search=${query.get("search") || ""} find=${(text) => go(withQuery(logs, { search: text }), { replace: true })} />`
      : LOGS_SHOWN
        ? html`<p><a href=${logs}>Show the logs, and follow them</a></p>`
        : html`<${NoLogs} command=${`heron logs ${topology} --task ${task} --follow`} />`}
    <h3>Metrics</h3>
    <p><a href=${withQuery(viewPath(cluster, topology, "timelines"), { tasks: task })}>Those of the history, by time</a></p>
    <${MetricsTable} cluster=${cluster} topology=${topology} label="Metrics of the task" of=${{ task }} shown=${{ tasks: task }} />
  `;
}

function Time({ time }) {
  // In a fixed order, also those of 0 %: what is below must not move while somebody is about to click.
  const names = [...Object.keys(USES), ...Object.keys(time)];
  const uses = [...new Set(names)].filter((use) => use in time).map((use) => [use, time[use]]);
  return html`<section hidden=${!uses.length}>
    <h3>Where its time goes</h3>
    <ul class="uses">
      ${uses.map(([use, share]) => html`<li key=${use}><meter min="0" max="1" value=${share} aria-label=${use}></meter> <b>${format.percent(share)}</b> ${USES[use] || use}</li>`)}
    </ul>
  </section>`;
}

// With `visit`, an object for each time that a link to the line of the task is followed, the task is asked without a button.
function Stack({ place, topology, task, visit }) {
  const [state, setState] = useState({ answer: null, problem: "", asks: false });
  const section = useRef(null);
  useEffect(() => {
    if (visit) ask();
  }, [visit]);
  async function ask() {
    setState((former) => ({ ...former, asks: true }));
    try {
      setState({ answer: (await read(`${place}/tasks/${task}/stack`)).stacks, problem: "", asks: false });
      requestAnimationFrame(() => section.current && section.current.scrollIntoView({ block: "start" }));
    } catch (error) {
      setState({ answer: null, problem: error.message, asks: false });
    }
  }
  const { answer } = state;
  return html`<section ref=${section}>
    <h3>Stack</h3>
    <p><button type="button" disabled=${state.asks} onClick=${ask}>${state.asks ? "The task is asked…" : "Show what each thread does now"}</button></p>
    <div role="status">
      ${state.problem && html`<p class="notice bad">${state.problem}</p>`}
      ${answer && html`<p>At ${format.moment(answer.at_s)}, as <code>heron stack ${topology} ${task}</code></p>`}
    </div>
    ${answer && answer.threads.map((each) => html`<${Thread} key=${each.native_id} thread=${each} />`)}
  </section>`;
}

function stateOf(thread) {
  if (thread.state === "waits") return thread.waits_for ? `waits for ${thread.waits_for}` : "waits";
  if (thread.state === "ready") return "is ready to run, and waits for a processor";
  if (thread.state !== "running") return "is in an unknown state";
  return thread.role === "gateway" ? "runs" : `runs, on a processor for ${format.percent(thread.cpu_share)} of the time`;
}

// The innermost call is the last, as in a traceback; the author's lines stand out.
function Thread({ thread }) {
  const half = Math.floor(thread.frames.length / 2);
  const guilty = thread.frames.filter((each) => each.origin === "user").pop();
  return html`<section class="thread">
    <h4>${thread.name}${ROLES[thread.role] ? ` (${ROLES[thread.role]})` : ""}: ${stateOf(thread)}</h4>
    ${guilty && html`<p class="guilty">In your code: <b>${shortPath(guilty.file)}, line ${guilty.line}</b>, in ${guilty.function}<br /><code>${guilty.source}</code></p>`}
    <ol class="frames">
      ${thread.frames.map(
        (each, number) => html`${thread.omitted > 0 && number === half && html`<li class="engine">… ${thread.omitted} more calls …</li>`}
          <li key=${number} class=${each.origin}>
            <span class="origin">${each.origin}</span> <span title=${each.file}>${shortPath(each.file)}</span>, line ${each.line}, in ${each.function}
            ${each.source && html`<pre tabindex="0" aria-label="Source">${each.source}</pre>`}
          </li>`,
      )}
    </ol>
  </section>`;
}

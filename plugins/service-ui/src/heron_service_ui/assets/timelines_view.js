// Values by time from the tracker's history, with events and decisions marked on them. All charts have one cursor and
// one range, which is part of the URL.

import { useRef, useState } from "./vendor/htm-preact.js";
import { html, plain } from "./html.js";
import * as format from "./formats.js";
import { Chart } from "./chart.js";
import { MARKS, markOf, marksNear } from "./chart_marks.js";
import { ENGINE_CHARTS, OF_ENGINE } from "./engine_metrics.js";
import { Choice, Freshness, Scrolled, viewPath, withQuery } from "./pieces.js";
import { placeOf, read, readAll, usePolled } from "./tracker_api.js";

const SPANS = { "15m": ["15 minutes", 900], "1h": ["hour", 3600], "6h": ["6 hours", 21_600], "1d": ["day", 86_400], "14d": ["14 days", 1_209_600] };
// Title, metrics with what is added to the name of the component, text of a value, kinds of components.
const OF_STATUS = [
  ["Emitted by spouts", { "emit-count": "" }, format.rate, (kind) => kind !== "bolt"],
  ["Executed by bolts", { "execute-count": "" }, format.rate, (kind) => kind !== "spout"],
  ["Share of time in which it holds spouts back", { "back-pressure": "" }, format.percent, () => true],
  ["Data that waits", { "queue-bytes": "" }, format.bytes, () => true],
  ["Mean time in user code", { "latency-s": "" }, format.latency, (kind) => kind !== "spout"],
  ["Failed tuples", { "fail-count": "" }, format.rate, () => true],
  ["Restarts of tasks since the start", { restarts: "" }, format.count, () => true],
];
const OF_METRICS = [
  ["Time of a tuple, of the slowest task", { "latency-p50-s": " p50", "latency-p99-s": " p99" }, format.latency, () => true],
  ["Busy share of time, mean of the tasks", { busy: "" }, format.percent, () => true],
  ["Memory of its processes", { "resident-bytes": "" }, format.bytes, () => true],
  ["Share of time in Python's cycle collector", { "gc-share": "" }, format.percent, () => true],
];
// Those of tasks, which are compared in one chart.
const OF_TASKS = [
  ["Emitted", { "emit-count": "" }, format.rate, (kind) => kind !== "bolt"],
  ["Executed", { "execute-count": "" }, format.rate, (kind) => kind !== "spout"],
  ["Busy share of time", { busy: "" }, format.percent, () => true],
  ["Share of time in which it holds spouts back", { "back-pressure": "" }, format.percent, () => true],
  ["Time of a tuple, p99", { "latency-p99-s": "" }, format.latency, () => true],
  ["Memory of its process", { "resident-bytes": "" }, format.bytes, () => true],
  ["Acked", { "ack-count": "" }, format.rate, () => true],
  ["Failed tuples", { "fail-count": "" }, format.rate, () => true],
];
export const OF_AUTHORS = "user/"; // begins the names of the metrics that authors register
const MOST_OF_AUTHORS = 12; // charts of them that are shown at once; each can be chosen
const TASK_STEP_S = 60; // the history of tasks has minutes
const LEAST_S = 60; // a chart of some seconds has no time axis to speak of
const METRICS_STEP_S = 15; // metrics are read every 10 s, or a little later
const MOST_SERIES = 16; // lines of a chart that a person can tell apart, and then some
const MOST_POINTS = 450; // of a line, as the charts have columns

export function TimelinesView({ cluster, topology, query, go, status }) {
  const last = SPANS[query.get("last")] ? query.get("last") : "15m";
  const [from, to] = [Number(query.get("from")) || 0, Number(query.get("to")) || 0];
  const zoomed = from > 0 && to > from;
  const span = zoomed ? to - from : SPANS[last][1];
  const place = placeOf(cluster, topology);
  const shown = useRef(null);
  const range = () => (zoomed ? `start=${from}&end=${to}` : `start=${Math.ceil(Date.now() / 1000) - span + 5}`);
  const period = Math.max(2, span / MOST_POINTS);
  const tasks = tasksOf(query.get("tasks") || "");
  const comparing = tasks.length > 0;
  const metric = query.get("metric") || "";
  const process = query.get("process") || ""; // a stream manager instead of all of them
  const keys = [place, last, from, to, tasks.join(), process, metric.startsWith(OF_ENGINE) && metric];
  const stepped = (least) => `&step=${Math.max(least, Math.ceil(span / MOST_POINTS))}`;
  const ofProcess = process && `&component=${encodeURIComponent(process)}`;
  const named = metric.startsWith(OF_ENGINE) ? `&metric=${encodeURIComponent(metric)}${ofProcess}` : ""; // those are many, so each is asked for by its name
  const ofTasks = comparing ? stepped(TASK_STEP_S) + tasks.map((each) => `&task=${each}`).join("") : "";
  const history = usePolled((signal) => read(`${place}/history?${range()}${ofTasks}${comparing ? named : ""}`, signal), comparing ? Math.max(10, period) : period, keys);
  const slower = usePolled(
    (signal) => (comparing ? null : read(`${place}/history?${range()}${stepped(METRICS_STEP_S)}${named}`, signal)),
    Math.max(10, period),
    keys,
  );
  const decisions = usePolled((signal) => readAll(`${place}/health`, signal), 2, [place]);
  const path = viewPath(cluster, topology, "timelines");
  const kept = { last: last === "15m" ? "" : last, tasks: tasks.join(), metric, process };
  const choose = (values) => go(withQuery(path, { ...kept, ...values }), { replace: true });
  const zoom = (start, end) => choose({ from: Math.floor(start), to: Math.ceil(Math.max(end, start + LEAST_S)) });
  const kinds = new Map((status ? status.components : []).map((each) => [each.name, each.kind]));
  const events = history.data ? history.data.events : [];
  const marks = [...events, ...(decisions.data ? decisions.data.items : [])].map(markOf).filter(Boolean);
  const own = ofAuthors((comparing ? history : slower).data, metric, comparing ? "" : ", sum of the tasks");
  const listed = [...(comparing ? OF_TASKS : [...OF_STATUS, ...OF_METRICS]), ...own, ...ENGINE_CHARTS];
  const ofEngine = ENGINE_CHARTS.filter(([, metrics]) => metric in metrics);
  const many = !metric && own.length > MOST_OF_AUTHORS;
  const shownOwn = many ? own.slice(0, MOST_OF_AUTHORS) : own;
  const charts = (answer, wanted) => answer.data && wanted.filter(([, metrics]) => !metric || metric in metrics).map(([title, metrics, textOf, fits]) => {
    const series = seriesOf(answer.data, metrics, (name) => fits(kinds.get(name)), comparing);
    const limits = zoomed ? [from, to] : [beginOf(history.data || answer.data), answer.data.end_s];
    return series.length > 0 && html`<${Chart} key=${`${title} ${last}`} title=${title} textOf=${textOf} series=${series} step=${answer.data.step_s} range=${limits} marks=${marks} onZoom=${zoom} onAll=${() => choose({})} onCursor=${(at, tolerance) => show(shown.current, marks, at, tolerance)} />`;
  });
  return html`
    <h2>Timelines</h2>
    <div class="choices">
      <${Choice} label="Last" value=${last} values=${Object.entries(SPANS).map(([key, [title]]) => [key, title])} onChange=${(key) => choose({ last: key === "15m" ? "" : key })} />
      <${Choice} label="Chart" value=${metric} values=${[["", "all"], ...listed.map(([title, metrics]) => [Object.keys(metrics)[0], title])]} onChange=${(key) => choose({ metric: key, process: "" })} />
      ${zoomed && html`<span>${format.moment(from)} to ${format.moment(to)} <button type="button" onClick=${() => choose({})}>Show all</button></span>`}
      <${Compared} key=${tasks.join()} tasks=${tasks} compare=${(wanted) => choose({ tasks: wanted, metric: "" })} />
    </div>
    <p class="legend">Drag over a chart to enlarge a part in all of them; double-click shows all again. Vertical lines are events:
      ${Object.values(MARKS).map(([letter, title]) => html` <span key=${letter} class="mark-key"><b>${letter}</b> ${title}</span>`)}</p>
    ${!history.data && html`<${Freshness} polled=${history} wanted="the history" />`}
    ${history.data && history.data.error && html`<p class="notice bad" role="status">Nothing is recorded now: ${history.data.error}</p>`}
    ${history.data && history.data.prometheus_error && html`<p class="notice bad" role="status">Prometheus does not answer, and the tracker's own values are shown: ${history.data.prometheus_error}</p>`}
    ${history.data && !history.data.series.length && html`<p>The history has no values of this time yet.</p>`}
    <div class="charts">${comparing ? charts(history, [...OF_TASKS, ...shownOwn, ...ofEngine]) : [charts(history, OF_STATUS), charts(slower, [...OF_METRICS, ...shownOwn, ...ofEngine])]}</div>
    ${many && html`<p>Your code registers ${own.length} metrics, of which ${MOST_OF_AUTHORS} are shown. Choose another one above.</p>`}
    <p class="at-cursor" ref=${shown} hidden></p>
    <h2>Events</h2>
    <${Events} events=${events} cluster=${cluster} topology=${topology} />
  `;
}

// The metrics that the author's code registers, as far as the history has them, and the one that an address names.
function ofAuthors(answer, chosen, what) {
  const names = (answer ? answer.series : []).map((each) => each.metric).concat(chosen).filter((each) => each.startsWith(OF_AUTHORS));
  return [...new Set(names)].sort().map((name) => [name + what, { [name]: "" }, format.decimal, () => true]);
}

// The numbers of the tasks that an address or a person names.
function tasksOf(text) {
  const found = text.split(/[^0-9]+/).map(Number).filter((each) => each > 0 && each <= 1e9);
  return [...new Set(found)].slice(0, MOST_SERIES);
}

// Which tasks are compared: what a person types becomes a part of the address.
function Compared({ tasks, compare }) {
  const [wanted, setWanted] = useState(tasks.join(", "));
  return html`<form class="choices" onSubmit=${(event) => { event.preventDefault(); compare(tasksOf(wanted).join()); }}>
    <label class="choice">Tasks, at most ${MOST_SERIES} <input type="text" size="16" maxlength="200" placeholder="2, 3" value=${wanted} onInput=${(event) => setWanted(event.currentTarget.value)} /></label>
    <button type="submit">Compare</button>
    ${tasks.length > 0 && html`<button type="button" onClick=${() => compare("")}>Show the components</button>`}
  </form>`;
}

// The lines of a chart: the chosen metrics of the components that fit, or of their tasks, and have a value.
function seriesOf({ series }, metrics, fits, ofTasks) {
  return series
    .filter((each) => each.task_id > 0 === ofTasks && each.metric in metrics && fits(each.component) && each.points.some((point) => point.value))
    .slice(0, MOST_SERIES)
    .map((each) => ({ name: ofTasks ? `${each.component}/${each.task_id}` : each.component + metrics[each.metric], points: each.points }));
}

// A young topology fills its charts, and not their last pixels.
function beginOf({ series, start_s, end_s, step_s }) {
  const first = Math.min(end_s, ...series.filter((each) => each.points.length).map((each) => each.points[0].at_s));
  return Math.max(start_s, Math.min(first, end_s - LEAST_S) - step_s);
}

// What happened at the cursor, in words; it stays at the lower edge of the window.
function show(element, marks, at, tolerance) {
  if (!element) return;
  const near = at === null ? [] : marksNear(marks, at, tolerance);
  element.hidden = !near.length;
  element.textContent = plain(near.slice(0, 4).map((each) => `${format.moment(each.at)}: ${each.text}`).join(" · "));
}

export async function readEvents(place, signal) {
  return read(`${place}/events?limit=1000`, signal);
}

export function Events({ events, cluster, topology }) {
  if (!events.length) return html`<p>Nothing is known to have happened.</p>`;
  return html`<${Scrolled} label="Events">
    <table>
      <thead><tr><th scope="col">time</th><th scope="col">event</th><th scope="col">of</th><th scope="col">what</th></tr></thead>
      <tbody>
        ${[...events].reverse().slice(0, 200).map((each) => {
          const task = /-(\d+)$/.exec(each.subject);
          const isTask = task && /^(task|back-pressure)-/.test(each.kind);
          return html`<tr key=${each.number}>
            <td>${format.moment(each.at_s)}</td>
            <td>${each.kind}</td>
            <td>${isTask ? html`<a href=${viewPath(cluster, topology, "task", task[1])}>${each.subject}</a>` : each.subject || "the topology"}</td>
            <td class="words">${each.text}</td>
          </tr>`;
        })}
      </tbody>
    </table>
  <//>`;
}

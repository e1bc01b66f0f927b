// Values by time from the tracker's history, with events marked on them. All charts have one cursor.

import { html, useEffect, useRef, useState } from "./vendor/htm-preact.js";
import * as format from "./formats.js";
import { Choice, Freshness, Scrolled, viewPath, withQuery } from "./pieces.js";
import { placeOf, read, usePolled } from "./tracker_api.js";

const SPANS = { "15m": ["15 minutes", 900], "1h": ["hour", 3600], "6h": ["6 hours", 21_600], "1d": ["day", 86_400], "14d": ["14 days", 1_209_600] };
const CHARTS = [
  ["emit-count", "Emitted by spouts", format.rate, (kind) => kind !== "bolt"],
  ["execute-count", "Executed by bolts", format.rate, (kind) => kind !== "spout"],
  ["queue-bytes", "Data that waits", format.bytes, () => true],
  ["latency-s", "Mean time in user code", format.latency, (kind) => kind !== "spout"],
  ["fail-count", "Failed tuples", format.rate, () => true],
];
const COLORS = 8; // of style.css
const HEIGHT = 190;
const LEAST_S = 60; // a chart of some seconds has no time axis to speak of
const MOST_SERIES = 16; // lines of a chart that a person can tell apart, and then some

export function TimelinesView({ cluster, topology, query, go, status }) {
  const last = SPANS[query.get("last")] ? query.get("last") : "15m";
  const [, span] = SPANS[last];
  const place = placeOf(cluster, topology);
  const history = usePolled(
    (signal) => read(`${place}/history?start=${Math.ceil(Date.now() / 1000) - span + 5}`, signal),
    Math.max(2, span / 450),
    [place, last],
  );
  const events = usePolled((signal) => readEvents(place, signal), 2, [place]);
  const path = viewPath(cluster, topology, "timelines");
  const choose = (key) => go(withQuery(path, { last: key === "15m" ? "" : key }), { replace: true });
  const kinds = new Map((status ? status.components : []).map((each) => [each.name, each.kind]));
  const all = history.data ? history.data.series.filter((each) => each.task_id === 0) : [];
  const range = history.data ? [beginOf(all, history.data), history.data.end_s] : [0, 0];
  const marks = events.data ? events.data.items.filter((each) => each.kind !== "checkpoint-completed") : [];
  return html`
    <h2>Timelines</h2>
    <div class="choices">
      <${Choice} label="Last" value=${last} values=${Object.entries(SPANS).map(([key, [title]]) => [key, title])} onChange=${choose} />
    </div>
    <p class="legend">Drag over a chart to enlarge a part of it; double-click shows all again. Vertical lines are events.</p>
    ${!history.data && html`<${Freshness} polled=${history} wanted="the history" />`}
    ${history.data && history.data.error && html`<p class="notice bad" role="status">Nothing is recorded now: ${history.data.error}</p>`}
    ${history.data && !all.length && html`<p>The history has no values of this time yet.</p>`}
    ${CHARTS.map(([metric, title, textOf, fits]) => {
      const series = all.filter((each) => each.metric === metric && fits(kinds.get(each.component)) && each.points.some((point) => point.value));
      return series.length > 0 && html`<${Chart} key=${`${metric} ${last}`} title=${title} textOf=${textOf} series=${series.slice(0, MOST_SERIES)} step=${history.data.step_s} range=${range} marks=${marks} />`;
    })}
    <h2>Events</h2>
    <${Events} events=${marks} cluster=${cluster} topology=${topology} />
  `;
}

// A young topology fills its charts, and not their last pixels.
function beginOf(series, { start_s, end_s, step_s }) {
  const first = Math.min(end_s, ...series.filter((each) => each.points.length).map((each) => each.points[0].at_s));
  return Math.max(start_s, Math.min(first, end_s - LEAST_S) - step_s);
}

export async function readEvents(place, signal) {
  return read(`${place}/events?limit=1000`, signal);
}

export function Events({ events, cluster, topology }) {
  if (!events.length) return html`<p>Nothing has happened since the tracker began to watch.</p>`;
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

// One column of times for all series; a hole in one of them stays a hole.
function columns(series, step, [start, end]) {
  const first = Math.ceil(start / step) * step;
  const times = [];
  for (let at = first; at < end; at += step) times.push(at);
  const place = new Map(times.map((at, number) => [at, number]));
  const values = series.map((each) => {
    const found = new Array(times.length).fill(null);
    for (const point of each.points) if (place.has(point.at_s)) found[place.get(point.at_s)] = point.value;
    return found;
  });
  return [times, ...values];
}

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function Chart({ title, textOf, series, step, range, marks }) {
  const where = useRef(null);
  const chart = useRef(null);
  const marked = useRef([]);
  const [library, setLibrary] = useState(null);
  const names = series.map((each) => each.component);
  const key = names.join("\n");
  marked.current = marks;
  useEffect(() => {
    import("./vendor/uPlot.js").then((module) => setLibrary(() => module.default));
  }, []);
  useEffect(() => {
    if (!library) return undefined;
    const options = chartOptions(library, names, textOf, where.current.clientWidth, marked);
    const made = new library(options, columns(series, step, range), where.current);
    chart.current = made;
    const watcher = new ResizeObserver(() => made.setSize({ width: where.current.clientWidth, height: HEIGHT }));
    watcher.observe(where.current);
    return () => {
      watcher.disconnect();
      made.destroy();
      chart.current = null;
    };
  }, [library, key]);
  useEffect(() => {
    const made = chart.current;
    if (!made) return;
    const [before] = made.data;
    const { min, max } = made.scales.x; // null until the chart is drawn for the first time
    const zoomed = typeof min === "number" && (min > before[0] || max < before[before.length - 1]);
    made.setData(columns(series, step, range), !zoomed); // a part that a person looks at stays
    if (zoomed) made.redraw();
  });
  const newest = series.map((each) => `${each.component} ${textOf(each.points[each.points.length - 1].value)}`).join(", ");
  return html`<figure class="chart">
    <figcaption>${title}</figcaption>
    <div ref=${where} role="img" aria-label=${`${title} by time. Newest values: ${newest}`}></div>
  </figure>`;
}

function chartOptions(library, names, textOf, width, marked) {
  const axis = { stroke: color("--text"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line") } };
  return {
    width,
    height: HEIGHT,
    cursor: { sync: { key: "heron-timelines", setSeries: false, scales: ["x", null] }, drag: { x: true, y: false } },
    scales: { x: { time: true }, y: { range: (_chart, _least, most) => [0, most > 0 ? most * 1.1 : 1] } },
    axes: [axis, { ...axis, size: 76, values: (_chart, values) => values.map((each) => textOf(each)) }],
    series: [
      { label: "time" },
      ...names.map((name, number) => ({
        label: format.cut(name, 40),
        stroke: color(`--series-${number % COLORS}`),
        dash: number < COLORS ? [] : [6, 4],
        width: 2,
        spanGaps: false,
        value: (_chart, value) => textOf(value),
      })),
    ],
    hooks: { draw: [(made) => drawMarks(made, marked.current)] },
  };
}

function drawMarks(made, marks) {
  const { ctx, bbox } = made;
  ctx.save();
  ctx.strokeStyle = color("--mark");
  ctx.setLineDash([4, 4]);
  ctx.lineWidth = 1.5;
  for (const each of marks) {
    const left = made.valToPos(each.at_s, "x", true);
    if (left < bbox.left || left > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(left, bbox.top);
    ctx.lineTo(left, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

// One chart of lines by time, on a canvas, with marks. All charts of a page share the cursor.

import { useEffect, useRef, useState } from "./vendor/htm-preact.js";
import { html, plain } from "./html.js";
import * as format from "./formats.js";
import { MARKS } from "./chart_marks.js";

const PAGE = 10; // steps of the keys Page Up and Page Down
const BINARY = Array.from({ length: 45 }, (_, power) => 2 ** power); // steps of an axis of bytes
const COLORS = 8; // of style.css
const HEIGHT = 190;
const NEAR = 6; // pixels between the cursor and a mark that it shows

// `series` have a name and points; `range` are the seconds since 1970 of both edges. `onZoom(start, end)` follows a drag,
// `onAll()` a double-click, and `onCursor(at, tolerance)` the cursor, in seconds; null when it leaves.
export function Chart({ title, textOf, series, step, range, marks, onZoom, onAll, onCursor }) {
  const where = useRef(null);
  const chart = useRef(null);
  const now = useRef(null);
  const [library, setLibrary] = useState(null);
  const [at, setAt] = useState(null); // the time of a cursor that a key has moved
  const [spoken, speak] = useState("");
  const theme = useTheme();
  const names = series.map((each) => each.name);
  const key = names.join("\n");
  now.current = { marks, range, onZoom, onAll, onCursor };
  useEffect(() => {
    import("./vendor/uPlot.js").then((module) => setLibrary(() => module.default));
  }, []);
  useEffect(() => {
    if (!library) return undefined;
    const options = chartOptions(names, textOf, where.current.clientWidth, now);
    const made = new library(options, columns(series, step, range), where.current);
    chart.current = made;
    const watcher = new ResizeObserver(() => made.setSize({ width: where.current.clientWidth, height: HEIGHT }));
    watcher.observe(where.current);
    return () => {
      watcher.disconnect();
      made.destroy();
      chart.current = null;
    };
  }, [library, key, theme]);
  useEffect(() => {
    if (chart.current) chart.current.setData(columns(series, step, range));
  });
  function pressed(event) {
    const made = chart.current;
    if (!made || event.ctrlKey || event.metaKey || event.altKey) return;
    const [times, ...values] = made.data;
    const here = at === null ? times.length : times.findIndex((each) => each >= at); // -1: it has left the chart
    const index = nextIndex(event.key, here, times.length - 1);
    if (index === undefined) return;
    event.preventDefault();
    if (index === null) {
      made.setCursor({ left: -10, top: -10 }, true, true);
      setAt(null);
      speak("");
      now.current.onCursor(null, 0);
      return;
    }
    made.setCursor({ left: made.valToPos(times[index], "x"), top: made.over.clientHeight / 2 }, true, true);
    setAt(times[index]);
    speak([format.moment(times[index]), ...names.map((name, number) => `${name} ${textOf(values[number][index])}`)].join(", "));
    now.current.onCursor(times[index], toleranceOf(made));
  }
  const newest = series.map((each) => `${each.name} ${textOf(each.points[each.points.length - 1].value)}`).join(", ");
  return html`<figure class="chart">
    <figcaption>${title}</figcaption>
    <div ref=${where} class="keyed" role="slider" tabindex="0" aria-label=${`${title} by time; the arrow keys move the cursor. Newest values: ${newest}`}
      aria-valuemin=${range[0]} aria-valuemax=${range[1]} aria-valuenow=${at ?? range[1]} aria-valuetext=${spoken || newest}
      onKeyDown=${pressed}></div>
  </figure>`;
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

function chartOptions(names, textOf, width, now) {
  const axis = { stroke: color("--text"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line") } };
  return {
    width,
    height: HEIGHT,
    padding: [16, null, null, null], // room for the letters of the marks
    cursor: {
      sync: { key: "heron-timelines", setSeries: false, scales: ["x", null] },
      drag: { x: true, y: false, setScale: false },
      bind: { dblclick: () => () => now.current.onAll() },
    },
    scales: { x: { time: true, range: () => now.current.range }, y: { range: (_chart, least, most) => [Math.min(0, least * 1.1), most > 0 ? most * 1.1 : Number(least >= 0)] } },
    axes: [axis, { ...axis, ...(textOf === format.bytes ? { incrs: BINARY } : {}), size: 76, values: (_chart, values) => values.map((each) => textOf(each)) }],
    series: [
      { label: "time" },
      ...names.map((name, number) => ({
        label: format.cut(plain(name), 40),
        stroke: color(`--series-${number % COLORS}`),
        dash: number < COLORS ? [] : [6, 4],
        width: 2,
        spanGaps: false,
        value: (_chart, value) => textOf(value),
      })),
    ],
    hooks: {
      draw: [(made) => drawMarks(made, now.current.marks)],
      setSelect: [(made) => zoom(made, now.current.onZoom)],
      setCursor: [(made) => follow(made, now.current.onCursor)],
    },
  };
}

// Every chart is told of the drag; the one under the pointer asks for the range.
function zoom(made, onZoom) {
  const { left, width } = made.select;
  if (width < NEAR) return;
  const range = [made.posToVal(left, "x"), made.posToVal(left + width, "x")];
  made.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  if (made.cursor.event) onZoom(...range);
}

function follow(made, onCursor) {
  if (!made.cursor.event) return;
  const { left } = made.cursor;
  if (left < 0) onCursor(null, 0);
  else onCursor(made.posToVal(left, "x"), toleranceOf(made));
}

function toleranceOf(made) {
  return Math.abs(made.posToVal(NEAR, "x") - made.posToVal(0, "x"));
}

// The index to which a key moves the cursor; null hides it, and undefined is no key of the chart.
function nextIndex(key, here, last) {
  const found = { ArrowLeft: here - 1, ArrowRight: here + 1, PageUp: here - PAGE, PageDown: here + PAGE, Home: 0, End: last, Escape: null }[key];
  return found === null || found === undefined ? found : Math.max(0, Math.min(last, found));
}

// A new value when the colours change, by the choice of the page or by the system.
function useTheme() {
  const [theme, setTheme] = useState(0);
  useEffect(() => {
    const change = () => setTheme((former) => former + 1);
    const watcher = new MutationObserver(change);
    watcher.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    const system = matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", change);
    return () => {
      watcher.disconnect();
      system.removeEventListener("change", change);
    };
  }, []);
  return theme;
}

function drawMarks(made, marks) {
  const { ctx, bbox } = made;
  ctx.save();
  ctx.strokeStyle = color("--mark");
  ctx.fillStyle = color("--text");
  ctx.lineWidth = 1.5;
  ctx.textAlign = "center";
  ctx.font = `bold ${Math.round(11 * devicePixelRatio)}px system-ui, sans-serif`;
  for (const each of marks) {
    const left = made.valToPos(each.at, "x", true);
    if (left < bbox.left || left > bbox.left + bbox.width) continue;
    const [letter, , gaps] = MARKS[each.kind];
    ctx.setLineDash(gaps);
    ctx.beginPath();
    ctx.moveTo(left, bbox.top);
    ctx.lineTo(left, bbox.top + bbox.height);
    ctx.stroke();
    ctx.fillText(letter, left, bbox.top - 3);
  }
  ctx.restore();
}

// Every task as a square of a heat map, and the tasks of the chosen components as a table.

import { html } from "./html.js";
import * as format from "./formats.js";
import { ComponentProfile } from "./inside_view.js";
import { Choice, Freshness, Scrolled, State, Troubles, heat, strain, viewPath, withQuery, worse } from "./pieces.js";
import { PERIOD_S, placeOf, readAll, usePolled } from "./tracker_api.js";

const FEW = 60; // tasks; more than these are in tables only when their component is chosen

const COMPARED = 8; // tasks by time; more lines than colours confuse
const LEAST_QUEUE = 64 * 1024; // bytes; shorter queues are no difference worth a word
const LEAST_TIME_S = 1e-4;
const LEAST_MEMORY = 16 * 1024 * 1024; // bytes; processes with the same code differ by some

// What a square can show. Only what is bad has a shade: `shade` takes the row, its value and that of the other tasks of
// the component, or with `all` of the topology; null without others.
const MEASURES = {
  busy: { title: "busy", value: (row) => row.busy, text: format.percent, shade: (row, busy) => strain(row, busy, row.time) },
  rate: { title: "tuples", value: (row) => row.rate_per_s, text: format.rate, shade: (row, rate, usual) => (waited(row) ? worse(usual ?? 0, Math.max(rate, 1)) : 0) },
  queue: { title: "queue", value: (row) => row.queue_bytes, text: format.bytes, shade: (row, size, usual) => worse(size, usual ?? 0, LEAST_QUEUE) },
  latency: { title: "p99 time", value: (row) => row.latency_p99_s, text: format.latency, shade: (row, time, usual) => (usual === null ? 0 : worse(time, usual, LEAST_TIME_S)) },
  memory: { title: "memory", value: (row) => row.resident_bytes, text: format.bytes, shade: (row, size, usual) => (usual === null ? 0 : worse(size, usual)), all: true },
  restarts: { title: "restarts", value: (row) => row.restarts, text: String, shade: (row, restarts, usual) => worse(restarts, usual ?? 0, 0.5) },
};

const WORSE = {
  rate: "fewer tuples, although some wait",
  queue: "a longer queue",
  latency: "more time for a tuple",
  memory: "more memory",
  restarts: "more restarts",
};

// Whether tuples wait for the task: it is slow, and not idle.
function waited(row) {
  return Boolean(row.culprit) || row.queue_bytes >= LEAST_QUEUE || row.busy > 0.8;
}

// The median of the other tasks, as a function of a task's own value; null without others.
function usualOf(rows, valueOf) {
  const sorted = rows.map(valueOf).filter((each) => each !== null).sort((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2) - 1;
  return (value) => (middle < 0 ? null : sorted[middle] < value ? sorted[middle] : sorted[middle + 1]);
}

// What is usual in each measure, for the tasks of a component.
function usualsOf(rows, all) {
  return Object.fromEntries(Object.entries(MEASURES).map(([key, measure]) => [key, usualOf(measure.all ? all : rows, measure.value)]));
}

function shadeOf(key, row, usuals) {
  const value = MEASURES[key].value(row);
  return value === null ? "" : heat(MEASURES[key].shade(row, value, usuals[key](value)));
}

export function TasksView({ cluster, topology, old, ended, query, go }) {
  const tasks = usePolled((signal) => readAll(`${placeOf(cluster, topology)}/tasks`, signal), PERIOD_S, [cluster, topology]);
  const chosen = query.get("component") || "";
  const by = MEASURES[query.get("by")] ? query.get("by") : "busy";
  if (!tasks.data) return html`<${Freshness} polled=${tasks} wanted="the tasks" />`;
  const groups = grouped(tasks.data.items);
  const names = [...groups.keys()];
  const path = viewPath(cluster, topology, "tasks");
  const show = (changes) => go(withQuery(path, { component: chosen, by: by === "busy" ? "" : by, ...changes }), { replace: true });
  const pathOf = (row) => viewPath(cluster, topology, "task", row.task_id);
  const detailed = (name) => (chosen ? name === chosen : tasks.data.items.length <= FEW);
  return html`
    <h2>Tasks</h2>
    <div class="choices">
      <${Choice} label="Component" value=${chosen} values=${[["", "all"], ...names.map((each) => [each, format.cut(each, 60)])]} onChange=${(component) => show({ component })} />
      <${Choice} label="Shade by" value=${by} values=${Object.entries(MEASURES).map(([key, each]) => [key, each.title])} onChange=${(key) => show({ by: key === "busy" ? "" : key })} />
    </div>
    <p class="legend">${by === "busy" ? "The shade is the share of time in which a task is busy, of a spout without the time in which it is blocked." : `A shade marks what is worse than in the other tasks of the ${MEASURES[by].all ? "topology" : "component"}: ${WORSE[by]}.`}</p>
    ${chosen && !groups.has(chosen) && html`<p class="notice" role="status">There is no component ${chosen}.</p>`}
    ${names
      .filter((each) => !chosen || each === chosen)
      .map((name) => html`<${Component} key=${name} ...${{ cluster, topology, name, by, old: old || ended, pathOf }} rows=${groups.get(name)} usuals=${usualsOf(groups.get(name), tasks.data.items)} detailed=${detailed(name)} chosenPath=${withQuery(path, { component: name })} profilePath=${withQuery(path, { component: name, show: "profile" })} />`)}
    ${groups.has(chosen) && !ended && html`<${ComponentProfile} key=${chosen} place=${placeOf(cluster, topology)} component=${chosen} part=${query.get("show") || ""} visit=${query} />`}
  `;
}

function grouped(rows) {
  const groups = new Map();
  for (const each of rows) {
    if (!groups.has(each.component)) groups.set(each.component, []);
    groups.get(each.component).push(each);
  }
  return groups;
}

function Component({ cluster, topology, name, rows, usuals, by, old, detailed, pathOf, chosenPath, profilePath }) {
  const { title, value: valueOf, text: textOf } = MEASURES[by];
  const found = findings(rows);
  return html`<section class="component">
    <h3><a href=${chosenPath}>${name}</a></h3>
    <p><a href=${profilePath}>Where the time of ${rows.length > 1 ? "its tasks" : "its task"} goes</a>${rows.length > 1 && html` · <a href=${withQuery(viewPath(cluster, topology, "timelines"), { tasks: busiest(rows) })}>Compare ${rows.length > COMPARED ? `the ${COMPARED} busiest tasks` : "its tasks"} by time</a>`}</p>
    ${found.length > 0 && html`<${Troubles} cluster=${cluster} topology=${topology} troubles=${found} />`}
    <ul class="squares" aria-label=${`Tasks of ${name}, shaded by ${title}`}>
      ${rows.map((each) => {
        const value = valueOf(each);
        const text = `task ${each.task_id}: ${title} ${value === null ? "not known" : textOf(value)}, ${each.state}`;
        return html`<li key=${each.task_id}><a class=${`${shadeOf(by, each, usuals)}${each.state === "running" ? "" : " still"}${each.culprit ? " culprit" : ""}`} href=${pathOf(each)} title=${text} aria-label=${text}>${each.task_id}</a></li>`;
      })}
    </ul>
    ${detailed && html`<${Table} name=${name} rows=${rows} usuals=${usuals} old=${old} pathOf=${pathOf} />`}
  </section>`;
}

function busiest(rows) {
  return [...rows].sort((one, other) => (other.busy ?? 0) - (one.busy ?? 0)).slice(0, COMPARED).map((each) => each.task_id).join();
}

// What differs among the tasks of a component, as troubles: a straggler, skew, queues, memory, deaths.
export function findings(rows) {
  const found = [];
  const tell = (row, text, kind = "") => found.push({ kind, text: `Task ${row.task_id} ${text}`, task_id: row.task_id });
  for (const each of rows) if (each.culprit) tell(each, `holds the spouts back: ${each.culprit}.`, "back-pressure");
  for (const each of rows) if (each.long_call) tell(each, `has been in one call for long: ${each.long_call}.`, "long-call");
  const measured = rows.filter((each) => each.state === "running" && each.rate_per_s !== null);
  const [rate, queue, memory] = [usualOf(measured, MEASURES.rate.value), usualOf(rows, MEASURES.queue.value), usualOf(rows, MEASURES.memory.value)];
  for (const each of measured) {
    const usual = rate(each.rate_per_s);
    if (usual === null || !waited(each)) continue;
    const ratio = each.rate_per_s / Math.max(usual, 1);
    if (ratio > 2) tell(each, `executes ${ratio.toFixed(1)} times the tuples of the others now: it gets more of them, or works off what waits. heron explain tells which.`);
    if (ratio < 0.5 && usual > 1) tell(each, `does ${format.percent(ratio)} of the tuples of the others, although tuples wait for it: a straggler.`);
  }
  for (const each of rows) {
    const [waiting, held] = [queue(each.queue_bytes), memory(each.resident_bytes)];
    if (waiting !== null && each.queue_bytes > LEAST_QUEUE && each.queue_bytes > 4 * waiting && !each.culprit)
      tell(each, `has ${format.bytes(each.queue_bytes)} in its queue, and the others have ${format.bytes(waiting)}.`);
    if (held !== null && each.resident_bytes > 2 * held && each.resident_bytes > held + LEAST_MEMORY)
      tell(each, `has ${format.bytes(each.resident_bytes)} of memory, and the others have ${format.bytes(held)}.`, "memory");
    if (each.state !== "running" && each.state !== "ended") tell(each, `is ${each.state}${each.last_error ? `: ${each.last_error}` : ""}.`);
  }
  return found.length > 8 ? [...found.slice(0, 7), { kind: "more", text: `And ${found.length - 7} more.` }] : found;
}

function Table({ name, rows, usuals, old, pathOf }) {
  const cell = (key, row) => {
    const value = MEASURES[key].value(row);
    return html`<td class=${`number ${shadeOf(key, row, usuals)}`}>${value === null ? "–" : MEASURES[key].text(value)}</td>`;
  };
  return html`<${Scrolled} label=${`Tasks of ${name}`}>
    <table class="tasks">
      <thead>
        <tr>
          <th scope="col">task</th>
          <th scope="col">state</th>
          <th scope="col">container</th>
          <th scope="col">host</th>
          <th scope="col" class="number">tuples</th>
          <th scope="col" class="number">busy</th>
          <th scope="col" class="number">queue</th>
          <th scope="col" class="number">p50 time</th>
          <th scope="col" class="number">p99 time</th>
          <th scope="col" class="number">cores</th>
          <th scope="col" class="number">memory</th>
          <th scope="col" class="number">restarts</th>
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) => html`<tr key=${row.task_id} class=${row.culprit ? "culprit" : ""}>
            <th scope="row"><a href=${pathOf(row)}>${row.task_id}</a></th>
            <td><${State} state=${row.state} old=${old} /></td>
            <td>${row.container_id}</td>
            <td>${row.host || "–"}</td>
            ${cell("rate", row)} ${cell("busy", row)} ${cell("queue", row)}
            <td class="number">${format.latency(row.latency_p50_s)}</td>
            ${cell("latency", row)}
            <td class="number">${row.cores === null ? "–" : row.cores.toFixed(2)}</td>
            ${cell("memory", row)} ${cell("restarts", row)}
          </tr>`,
        )}
      </tbody>
    </table>
  <//>`;
}

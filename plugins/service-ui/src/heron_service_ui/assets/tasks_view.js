// Every task as a square of a heat map, and the tasks of the chosen components as a table.

import { html } from "./vendor/htm-preact.js";
import * as format from "./formats.js";
import { Choice, Freshness, Scrolled, State, heat, viewPath, withQuery } from "./pieces.js";
import { PERIOD_S, placeOf, readAll, usePolled } from "./tracker_api.js";

const FEW = 60; // tasks; more than these are in tables only when their component is chosen

// What a square can show: its title, the value of a task, its text, and whether the shade is the distance from the
// others of the component (true) or the value itself.
const MEASURES = {
  busy: ["busy", (row) => row.busy, format.percent, false],
  rate: ["tuples", (row) => row.rate_per_s, format.rate, true],
  queue: ["queue", (row) => row.queue_bytes, format.bytes, true],
  latency: ["p99 time", (row) => row.latency_p99_s, format.latency, true],
  memory: ["memory", (row) => row.resident_bytes, format.bytes, true],
  restarts: ["restarts", (row) => row.restarts, String, true],
};
// The shade of a value among those of its component: equal ones are pale, and one that differs from the median by a
// factor of four or more, in either direction, is the darkest.
function distance(value, usual) {
  if (value === usual) return 0;
  if (value <= 0 || usual <= 0) return 0.99;
  return Math.min(0.99, Math.abs(Math.log2(value / usual)) / 2);
}

const LEAST_QUEUE = 64 * 1024; // bytes; shorter queues are no difference worth a word

export function TasksView({ cluster, topology, query, go }) {
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
      <${Choice} label="Shade by" value=${by} values=${Object.entries(MEASURES).map(([key, [title]]) => [key, title])} onChange=${(key) => show({ by: key === "busy" ? "" : key })} />
    </div>
    ${chosen && !groups.has(chosen) && html`<p class="notice" role="status">There is no component ${chosen}.</p>`}
    ${names
      .filter((each) => !chosen || each === chosen)
      .map((name) => html`<${Component} key=${name} name=${name} rows=${groups.get(name)} by=${by} detailed=${detailed(name)} pathOf=${pathOf} chosenPath=${withQuery(path, { component: name })} />`)}
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

function Component({ name, rows, by, detailed, pathOf, chosenPath }) {
  const [title, valueOf, textOf, compared] = MEASURES[by];
  const usual = median(rows.map((each) => valueOf(each) || 0));
  const found = findings(rows);
  return html`<section class="component">
    <h3><a href=${chosenPath}>${name}</a></h3>
    ${found.length > 0 && html`<ul class="troubles">${found.map((each) => html`<li key=${each}>${each}</li>`)}</ul>`}
    <ul class="squares" aria-label=${`Tasks of ${name}, shaded by ${title}`}>
      ${rows.map((each) => {
        const value = valueOf(each);
        const text = `task ${each.task_id}: ${title} ${value === null ? "not known" : textOf(value)}, ${each.state}`;
        const shade = value === null ? "" : shadeOf(by, value, usual, compared);
        return html`<li key=${each.task_id}><a class=${`${shade}${each.state === "running" ? "" : " still"}${each.culprit ? " culprit" : ""}`} href=${pathOf(each)} title=${text} aria-label=${text}>${each.task_id}</a></li>`;
      })}
    </ul>
    ${detailed && html`<${Table} name=${name} rows=${rows} pathOf=${pathOf} />`}
  </section>`;
}

function shadeOf(key, value, usual, compared) {
  if (!compared) return heat(value);
  if (key === "queue") return heat(value < LEAST_QUEUE ? 0 : distance(value, Math.max(usual, LEAST_QUEUE / 2)));
  return heat(distance(value, usual));
}

function median(values) {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted.length ? sorted[Math.floor(sorted.length / 2)] : 0;
}

// What differs among the tasks of a component, in sentences: a straggler, skew, queues, deaths.
export function findings(rows) {
  const found = [];
  for (const each of rows) if (each.culprit) found.push(`Task ${each.task_id} holds the spouts back: ${each.culprit}.`);
  for (const each of rows) if (each.long_call) found.push(`Task ${each.task_id} has been in one call for long: ${each.long_call}.`);
  const measured = rows.filter((each) => each.state === "running" && each.rate_per_s !== null);
  const usual = median(measured.map((each) => each.rate_per_s));
  if (measured.length > 2 && usual > 1) {
    for (const each of measured) {
      const ratio = each.rate_per_s / usual;
      if (ratio > 2) found.push(`Task ${each.task_id} gets ${ratio.toFixed(1)} times the tuples of the others: the keys are skewed.`);
      if (ratio < 0.5) found.push(`Task ${each.task_id} does ${format.percent(ratio)} of the tuples of the others${each.busy > 0.8 ? " although it is busy: a straggler" : ""}.`);
    }
  }
  const queue = median(rows.map((each) => each.queue_bytes || 0));
  for (const each of rows) {
    if (rows.length > 1 && each.queue_bytes > LEAST_QUEUE && each.queue_bytes > 4 * queue && !each.culprit)
      found.push(`${format.bytes(each.queue_bytes)} wait for task ${each.task_id}, and ${format.bytes(queue)} for the others.`);
    if (each.state !== "running" && each.state !== "ended") found.push(`Task ${each.task_id} is ${each.state}${each.last_error ? `: ${each.last_error}` : ""}.`);
  }
  return found.length > 8 ? [...found.slice(0, 7), `And ${found.length - 7} more.`] : found;
}

function Table({ name, rows, pathOf }) {
  const usual = Object.fromEntries(Object.entries(MEASURES).map(([key, [, valueOf]]) => [key, median(rows.map((each) => valueOf(each) || 0))]));
  const cell = (key, row) => {
    const [, valueOf, textOf, compared] = MEASURES[key];
    const value = valueOf(row);
    const shade = value === null ? "" : shadeOf(key, value, usual[key], compared);
    return html`<td class=${`number ${shade}`}>${value === null ? "–" : textOf(value)}</td>`;
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
            <td><${State} state=${row.state} /></td>
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

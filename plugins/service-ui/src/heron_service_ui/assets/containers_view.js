// The containers of the packing plan: their tasks, where they run, and what they ask for.

import { html } from "./html.js";
import * as format from "./formats.js";
import { Freshness, heat, strain, viewPath } from "./pieces.js";
import { PERIOD_S, placeOf, read, readAll, usePolled } from "./tracker_api.js";

export function ContainersView({ cluster, topology, status }) {
  const place = placeOf(cluster, topology);
  const plan = usePolled((signal) => read(`${place}/packing-plan`, signal), 5 * PERIOD_S, [place]);
  const tasks = usePolled((signal) => readAll(`${place}/tasks`, signal), PERIOD_S, [place]);
  if (!plan.data) return html`<${Freshness} polled=${plan} wanted="the packing plan" />`;
  const rows = new Map((tasks.data ? tasks.data.items : []).map((each) => [each.task_id, each]));
  const processes = status ? status.processes : [];
  const logsOf = (each) => viewPath(cluster, topology, "process", `${each.process}-${each.container_id}`);
  return html`
    <h2>Containers</h2>
    <p class="legend">Packing plan ${plan.data.id}. The shade of a task is the share of time in which it is busy, of a spout without the time in which it is blocked.</p>
    <div class="cards">
      <${Engine} processes=${processes.filter((each) => each.container_id === 0)} logsOf=${logsOf} />
      ${plan.data.containers.map((each) => html`<${Container} key=${each.container_id} container=${each} rows=${rows} processes=${processes.filter((process) => process.container_id === each.container_id)} pathOf=${(task) => viewPath(cluster, topology, "task", task)} logsOf=${logsOf} />`)}
    </div>
  `;
}

function Container({ container, rows, processes, pathOf, logsOf }) {
  const sum = (key) => container.tasks.reduce((total, each) => total + each[key], 0);
  const hosts = [...new Set(processes.map((each) => each.host).filter(Boolean))];
  const used = container.tasks.reduce((total, each) => total + ((rows.get(each.task_id) || {}).resident_bytes || 0), 0);
  const cores = container.tasks.reduce((total, each) => total + ((rows.get(each.task_id) || {}).cores || 0), 0);
  return html`<section class="card">
    <h3>Container ${container.container_id}</h3>
    <dl class="facts">
      <div><dt>host</dt><dd>${hosts.join(", ") || "–"}</dd></div>
      <div><dt>cores: asked for</dt><dd>${container.cpu}</dd></div>
      <div><dt>not given to tasks</dt><dd>${Math.max(0, container.cpu - sum("cpu"))}</dd></div>
      <div><dt>used by tasks</dt><dd>${cores.toFixed(2)}</dd></div>
      <div><dt>memory: asked for</dt><dd>${format.bytes(container.ram_bytes)}</dd></div>
      <div><dt>not given to tasks</dt><dd>${format.bytes(Math.max(0, container.ram_bytes - sum("ram_bytes")))}</dd></div>
      <div><dt>used by tasks</dt><dd>${used ? format.bytes(used) : "–"}</dd></div>
    </dl>
    <ul class="chips" aria-label=${`Tasks of container ${container.container_id}`}>
      ${container.tasks.map((each) => {
        const row = rows.get(each.task_id) || { busy: null, time: {}, state: "not known", culprit: "" };
        const text = `${format.cut(each.component, 18)}/${each.task_id}: busy ${format.percent(row.busy)}, ${row.state}`;
        return html`<li key=${each.task_id}><a class=${`${heat(strain(row, row.busy, row.time))}${row.culprit ? " culprit" : ""}`} href=${pathOf(each.task_id)} title=${text} aria-label=${text}>${format.cut(each.component, 18)}/${each.task_id}</a></li>`;
      })}
    </ul>
    <${Processes} processes=${processes.filter((each) => !each.task_id)} logsOf=${logsOf} />
  </section>`;
}

function Engine({ processes, logsOf }) {
  return html`<section class="card" hidden=${!processes.length}><h3>Container 0</h3><p>Leads the topology; it has no tasks.</p><${Processes} processes=${processes} logsOf=${logsOf} /></section>`;
}

function Processes({ processes, logsOf }) {
  return html`<ul class="plain">
    ${processes.map((each) => html`<li key=${each.process}><a href=${logsOf(each)} title="its logs">${each.process}</a>: ${each.state}${each.pid ? `, process ${each.pid}` : ""}${each.restarts ? `, ${format.plural(each.restarts, "restart")}` : ""}${each.last_error ? ` (${each.last_error})` : ""}</li>`)}
  </ul>`;
}

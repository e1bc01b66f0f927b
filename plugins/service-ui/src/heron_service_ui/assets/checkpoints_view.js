// The checkpoints: the restore point, the one under way, failures, those that were seen and those in the store, with the
// bytes of each task; the update that is under way; and a new one on demand.

import { useState } from "./vendor/htm-preact.js";
import { html } from "./html.js";
import * as format from "./formats.js";
import { ActionForm, ActionList } from "./actions_view.js";
import { Freshness, Scrolled, State, viewPath, withQuery } from "./pieces.js";
import { Update } from "./plans_view.js";
import { ACTIONS_ALLOWED, PERIOD_S, placeOf, read, readAll, usePolled } from "./tracker_api.js";

const STORED_S = 5; // the store is asked

export function CheckpointsView(shared) {
  const { topology, status } = shared;
  if (!status) return html`<h2>Checkpoints</h2><p>The topology has not answered yet.</p>`;
  if (!status.checkpoints)
    return html`<h2>Checkpoints</h2>
      <p>The topology takes no checkpoints. It does with <code>topology.reliability.mode: EFFECTIVELY_ONCE</code>.</p>
      ${status.update && html`<${Update} update=${status.update} />`}`;
  return html`
    <h2>Checkpoints</h2>
    <${Present} ...${shared} checkpoints=${status.checkpoints} />
    ${status.update && html`<${Update} update=${status.update} />`}
    ${!shared.ended && html`<${Take} ...${shared} />`}
    <${Seen} ...${shared} />
    <h2>Checkpoints in the store</h2>
    <${Stored} ...${shared} key=${topology} checkpoints=${status.checkpoints} />
  `;
}

// The id of the checkpoint to which a restore would return now; "" is the empty state.
function restorePoint(status) {
  return status.checkpoints.complete ? `${status.topology_id}/${status.checkpoints.complete}` : status.checkpoints.source;
}

function Present({ cluster, topology, status, checkpoints, ended }) {
  const { completed_at_s: at, failed, restores, slowest_task: slowest, last_error: error } = checkpoints;
  const known = at > 0; // a new topology manager does not know the figures of the former one's checkpoints
  return html`
    <dl class="facts">
      <div><dt>restore point</dt><dd>${restorePoint(status) || "the empty state"}</dd></div>
      <div><dt>age</dt><dd>${known ? format.duration(Date.now() / 1000 - at) : "–"}</dd></div>
      <div><dt>took</dt><dd>${known ? format.latency(checkpoints.duration_s) : "–"}</dd></div>
      <div><dt>size</dt><dd>${known ? format.bytes(checkpoints.size_bytes) : "–"}</dd></div>
      <div><dt>longest alignment</dt><dd>${known ? format.latency(checkpoints.align_s) : "–"}</dd></div>
      <div><dt>slowest task</dt><dd>${known && slowest ? html`<a href=${viewPath(cluster, topology, "task", slowest)}>${slowest}</a>` : "–"}</dd></div>
      <div><dt>failed</dt><dd>${format.count(failed)}</dd></div>
      <div><dt>restores</dt><dd>${format.count(restores)}</dd></div>
    </dl>
    <div role="status">
      ${!ended && checkpoints.waits_for && html`<p class="notice">${checkpoints.number > checkpoints.complete ? `Checkpoint ${checkpoints.number} waits for ${checkpoints.waits_for}.` : `The next checkpoint waits for ${checkpoints.waits_for}.`}</p>`}
      ${error && html`<p class="notice bad">The last failure: ${error}</p>`}
      ${restorePoint(status) && html`<${Begin} cluster=${cluster} id=${restorePoint(status)} />`}
      ${restores > 0 && html`<p class="notice">The last restore, ${format.moment(checkpoints.restored_at_s || null)}, returned to ${checkpoints.source || "the empty state"}${checkpoints.last_loss ? `: ${checkpoints.last_loss}` : ""}</p>`}
    </div>
  `;
}

// The command that begins another run from a checkpoint.
function Begin({ cluster, id }) {
  return html`<p>To begin another run from it: <code>heron submit ${cluster} FILE --from-checkpoint ${id}</code></p>`;
}

function Take({ cluster, topology }) {
  const path = `${placeOf(cluster, topology)}/actions`;
  const [asked, setAsked] = useState(0); // a new number makes the list be read at once
  if (!ACTIONS_ALLOWED) return html`<p>A new one on demand: <code>heron checkpoints ${topology} take</code></p>`;
  return html`<h3>A new one on demand</h3>
    <${ActionForm} path=${path} topology=${topology} only="checkpoint" components=${[]} onAsked=${() => setAsked((former) => former + 1)} />
    <${Taken} path=${path} asked=${asked} />`;
}

function Taken({ path, asked }) {
  const actions = usePolled((signal) => read(path, signal), 2, [path, asked]);
  const items = actions.data ? actions.data.items.filter((each) => each.action === "checkpoint") : [];
  return items.length > 0 && html`<${ActionList} items=${items} />`;
}

function Seen({ cluster, topology }) {
  const seen = usePolled((signal) => readAll(`${placeOf(cluster, topology)}/checkpoints`, signal), PERIOD_S, [cluster, topology]);
  return html`<h2>Complete and failed checkpoints</h2>
    ${!seen.data && html`<${Freshness} polled=${seen} wanted="the checkpoints" />`}
    ${seen.data && !seen.data.items.length && html`<p>There are none yet.</p>`}
    ${seen.data && seen.data.items.length > 0 && html`<${SeenTable} items=${seen.data.items} taskPath=${(task) => viewPath(cluster, topology, "task", task)} />`}
    <p class="legend">These are the newest 200 since the server of these pages began to watch. A failed checkpoint loses nothing: the next one begins soon.</p>`;
}

function SeenTable({ items, taskPath }) {
  return html`<${Scrolled} label="Complete and failed checkpoints">
    <table>
      <thead><tr><th scope="col" class="number">number</th><th scope="col">state</th><th scope="col">at</th><th scope="col" class="number">took</th><th scope="col" class="number">size</th><th scope="col" class="number">longest alignment</th><th scope="col" class="number">slowest task</th><th scope="col">reason</th></tr></thead>
      <tbody>
        ${items.map((each) => html`<tr key=${`${each.number} ${each.state} ${each.at_s}`}>
          <th scope="row" class="number">${each.number || "–"}</th>
          <td><${State} state=${each.state} /></td>
          <td>${format.moment(each.at_s)}</td>
          ${each.state === "complete" ? html`<td class="number">${format.latency(each.duration_s)}</td><td class="number">${format.bytes(each.size_bytes)}</td><td class="number">${format.latency(each.align_s)}</td>` : html`<td class="number">–</td><td class="number">–</td><td class="number">–</td>`}
          <td class="number">${each.slowest_task ? html`<a href=${taskPath(each.slowest_task)}>${each.slowest_task}</a>` : "–"}</td>
          <td class="words">${each.reason}</td>
        </tr>`)}
      </tbody>
    </table>
  <//>`;
}

// The restore point was read a little later than the list, in which it is the newest of its run.
function inList(items, point) {
  const newest = items.find((each) => !each.damage && sameRun(each.id, point));
  return newest ? newest.id : "";
}

function sameRun(one, other) {
  return one.slice(0, one.lastIndexOf("/")) === other.slice(0, other.lastIndexOf("/"));
}

function Stored({ cluster, topology, status, query }) {
  const wanted = query.get("of") || "";
  const path = withQuery(`${placeOf(cluster, topology)}/stored-checkpoints`, { tasks_of: wanted });
  const stored = usePolled((signal) => read(path, signal), STORED_S, [path]);
  const pathOf = (id) => withQuery(viewPath(cluster, topology, "checkpoints"), { of: id });
  if (!stored.data) return html`<${Freshness} polled=${stored} wanted="the store" />`;
  const { items, shown, tasks } = stored.data;
  if (!items.length) return html`<p>No checkpoint is complete yet.</p>`;
  return html`
    ${stored.problem && html`<p class="notice bad" role="status">The store does not answer: ${stored.problem.message}</p>`}
    <${StoredTable} items=${items} shown=${shown} point=${inList(items, restorePoint(status))} pathOf=${pathOf} />
    <p class="legend">Written is what the tasks wrote for it; the rest of its state is in objects of earlier checkpoints.</p>
    ${wanted && !shown && html`<p class="notice" role="status">Checkpoint ${wanted} is not among the newest in the store any more.</p>`}
    ${shown && html`<h3>Tasks of ${shown}</h3><${Begin} cluster=${cluster} id=${shown} />`}
    ${tasks.length > 0 && html`<${Tasks} tasks=${tasks} label=${`Tasks of ${shown}`} taskPath=${(task) => viewPath(cluster, topology, "task", task)} />`}
  `;
}

function StoredTable({ items, shown, point, pathOf }) {
  return html`<${Scrolled} label="Checkpoints in the store">
    <table>
      <thead><tr><th scope="col">checkpoint</th><th scope="col">note</th><th scope="col" class="number">age</th><th scope="col" class="number">took</th><th scope="col" class="number">size</th><th scope="col" class="number">written</th><th scope="col" class="number">longest alignment</th><th scope="col" class="number">tasks</th></tr></thead>
      <tbody>
        ${items.map((each) => html`<tr key=${each.id}>
          <th scope="row"><a href=${pathOf(each.id)} aria-current=${each.id === shown ? "true" : undefined}>${each.id}</a></th>
          <td class="words">${each.damage ? `damaged: ${each.damage}` : each.unread ? `not read yet: ${each.unread}` : each.id === point ? "restore point" : ""}</td>
          ${each.damage || each.unread ? html`<td colspan="6"></td>` : html`<td class="number">${format.duration(Date.now() / 1000 - each.taken_at_s)}</td>
            <td class="number">${format.latency(each.duration_s)}</td><td class="number">${format.bytes(each.size_bytes)}</td><td class="number">${format.bytes(each.written_bytes)}</td>
            <td class="number">${format.latency(each.align_s)}</td><td class="number">${format.count(each.tasks)}</td>`}
        </tr>`)}
      </tbody>
    </table>
  <//>`;
}

function Tasks({ tasks, label, taskPath }) {
  return html`<${Scrolled} label=${label}>
    <table>
      <thead><tr><th scope="col">task</th><th scope="col" class="number">size</th><th scope="col" class="number">written</th><th scope="col" class="number">key groups</th><th scope="col" class="number">alignment</th><th scope="col" class="number">saving</th><th scope="col">note</th></tr></thead>
      <tbody>
        ${tasks.map((each) => html`<tr key=${each.task_id}>
          <th scope="row"><a href=${taskPath(each.task_id)}>${each.component}/${each.task_id}</a></th>
          <td class="number">${format.bytes(each.size_bytes)}</td><td class="number">${format.bytes(each.written_bytes)}</td><td class="number">${format.count(each.key_groups)}</td>
          <td class="number">${format.latency(each.align_s)}</td><td class="number">${format.latency(each.save_s)}</td><td>${each.ended ? "had ended" : ""}</td>
        </tr>`)}
      </tbody>
    </table>
  <//>`;
}

// What went wrong: calls that do not return, errors with the author's line, processes that died, and events.

import { html } from "./html.js";
import * as format from "./formats.js";
import { Freshness, Scrolled, viewPath } from "./pieces.js";
import { placeOf, readAll, usePolled } from "./tracker_api.js";
import { DeadLetters } from "./letters_view.js";
import { Events, readEvents } from "./timelines_view.js";

export function ProblemsView({ cluster, topology, status, ended }) {
  const place = placeOf(cluster, topology);
  const errors = usePolled((signal) => readAll(`${place}/exceptions`, signal), 2, [place]);
  const events = usePolled((signal) => readEvents(place, signal), 2, [place]);
  const taskPath = (task) => viewPath(cluster, topology, "task", task);
  const calls = status && !ended ? status.long_calls : [];
  const died = status ? status.processes.filter((each) => each.last_error) : [];
  return html`
    <h2>Calls that do not return</h2>
    ${calls.length
      ? html`<ul class="errors">
          ${calls.map(
            (each) => html`<li key=${each.task_id}>
              <p><a href=${taskPath(each.task_id)}>${each.component}/${each.task_id}</a> has been in one call of <code>${each.function}</code> since ${format.moment(each.since_s)}</p>
              <pre tabindex="0" aria-label="Line of the call">${each.place}</pre>
            </li>`,
          )}
        </ul>`
      : html`<p>No task has been in one call for long.</p>`}
    <h2>Errors</h2>
    ${!errors.data && html`<${Freshness} polled=${errors} wanted="the errors" />`}
    ${errors.data && !errors.data.items.length && html`<p>No task has reported an error.</p>`}
    ${errors.data && html`<ul class="errors">${grouped(errors.data.items).map((each) => html`<${ErrorGroup} key=${each.key} group=${each} taskPath=${taskPath} />`)}</ul>`}
    <${DeadLetters} cluster=${cluster} topology=${topology} />
    ${died.length > 0 && html`<h2>Processes that died</h2><${Died} processes=${died} taskPath=${taskPath} />`}
    <h2>Events</h2>
    <${Events} events=${events.data ? events.data.items : []} cluster=${cluster} topology=${topology} />
  `;
}

// Errors of one class at one line of a component are one group, the newest first; other errors are each for itself.
function grouped(items) {
  const groups = new Map();
  for (const each of items) {
    const key = each.place ? `${each.component}\n${each.exception}\n${each.place}` : each.text;
    if (!groups.has(key)) groups.set(key, { key, newest: each, items: [] });
    groups.get(key).items.push(each);
  }
  return [...groups.values()];
}

function ErrorGroup({ group, taskPath }) {
  const { newest, items } = group;
  const tasks = [...new Set(items.map((each) => each.task_id).filter(Boolean))].sort((one, other) => one - other);
  const times = items.map((each) => each.first_at_s).filter((each) => each !== null);
  return html`<li>
    ${newest.place && html`<p class="guilty"><strong>${newest.exception}</strong> at <code>${newest.place}</code></p>`}
    <p>
      ${newest.component || "the topology"}${tasks.length > 0 && html`, ${tasks.length > 1 ? "tasks" : "task"} ${tasks.map((each, at) => html`${at ? ", " : ""}<a key=${each} href=${taskPath(each)}>${each}</a>`)}`}
      ${items.length > 1 && html`, ${format.plural(items.length, "error")}`}
      ${times.length > 0 && html`, ${items.length > 1 ? "newest" : "first seen"} ${format.moment(Math.max(...times))}`}
    </p>
    <pre tabindex="0" aria-label="Error">${newest.text}</pre>
    ${items.length > 1 && html`<details><summary>the others</summary>${items.slice(1).map((each) => html`<pre key=${each.text} tabindex="0" aria-label="Error">${each.text}</pre>`)}</details>`}
  </li>`;
}

function Died({ processes, taskPath }) {
  return html`<${Scrolled} label="Processes that died">
    <table>
      <thead><tr><th scope="col">process</th><th scope="col">container</th><th scope="col">state</th><th scope="col" class="number">restarts</th><th scope="col">why it last died</th></tr></thead>
      <tbody>
        ${processes.map(
          (each) => html`<tr key=${`${each.container_id} ${each.process}`}>
            <th scope="row">${each.task_id ? html`<a href=${taskPath(each.task_id)}>${each.process}</a>` : each.process}</th>
            <td>${each.container_id}</td><td>${each.state}</td><td class="number">${each.restarts}</td><td class="words">${each.last_error}</td>
          </tr>`,
        )}
      </tbody>
    </table>
  <//>`;
}

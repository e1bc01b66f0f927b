// What went wrong: calls that do not return, errors with the author's line, processes that died, and events.

import { html } from "./html.js";
import * as format from "./formats.js";
import { Freshness, SaveButton, Scrolled, viewPath, withQuery } from "./pieces.js";
import { LOGS_SHOWN, placeOf, readAll, usePolled } from "./tracker_api.js";
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
    ${errors.data && errors.data.items.length > 0 && html`<p><${SaveButton} name=${`${topology}-errors.json`} text="Save the errors as JSON" content=${() => JSON.stringify(errors.data.items, null, 2)} /></p>`}
    ${errors.data && html`<ul class="errors">${errors.data.items.map((each) => html`<${UserError} key=${`${each.component} ${each.exception} ${each.place || each.text} ${each.task_id}`} error=${each} taskPath=${taskPath} />`)}</ul>`}
    <${DeadLetters} cluster=${cluster} topology=${topology} />
    ${died.length > 0 && html`<h2>Processes that died</h2><${Died} processes=${died} taskPath=${taskPath} />`}
    <h2>Events</h2>
    <${Events} events=${events.data ? events.data.items : []} cluster=${cluster} topology=${topology} />
  `;
}

const TASKS = 20; // links of one error

// An error of one class at one line of a component, with the tasks that raised it. `count` is null where nobody counts.
function UserError({ error, taskPath }) {
  const { count, tasks, task_id: first, first_at_s: firstAt, newest_at_s: newestAt } = error;
  const raised = Object.entries(tasks).sort(([, one], [, other]) => other - one);
  const shown = raised.length ? raised : first ? [[first, 0]] : [];
  const logs = first > 0 && LOGS_SHOWN && withQuery(`${taskPath(first)}/logs`, { search: error.exception });
  return html`<li>
    ${error.place && html`<p class="guilty"><strong>${error.exception}</strong> at <code>${error.place}</code></p>`}
    <p>
      ${count > 0 && html`<strong>${count === 1 ? "once" : `${format.count(count)} times`}</strong> in `}${error.component || "the topology"}${shown.length > 0 && html`, ${shown.length > 1 ? "tasks" : "task"} ${shown.slice(0, TASKS).map(([task, times], at) => html`${at ? ", " : ""}<a key=${task} href=${taskPath(task)}>${task}</a>${count > 1 && shown.length > 1 && times ? ` (${format.count(times)})` : ""}`)}${shown.length > TASKS && ` and ${shown.length - TASKS} more`}`}
      ${firstAt !== null && html`, first ${format.moment(firstAt)}`}${newestAt !== null && count > 1 && html`, newest ${format.moment(newestAt)}`}
    </p>
    <pre tabindex="0" aria-label="Error">${error.text}</pre>
    ${error.trace && html`<details><summary>Traceback of the first one</summary><pre tabindex="0" aria-label="Traceback">${error.trace}</pre></details>`}
    ${count > 1 && html`<p>The log of a task has the first one only${logs && html`: <a href=${logs}>show it</a>`}.</p>`}
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

// The records that a topology has given up: how many by component, and the newest with their errors and values.

import { html } from "./html.js";
import * as format from "./formats.js";
import { Scrolled } from "./pieces.js";
import { placeOf, read, usePolled } from "./tracker_api.js";

const SHOWN = 20;

export function DeadLetters({ cluster, topology }) {
  const place = placeOf(cluster, topology);
  const polled = usePolled((signal) => read(`${place}/dead-letters?limit=${SHOWN}`, signal), 5, [place]);
  const answer = polled.data;
  if (!answer) return polled.problem && polled.problem.status !== 404 && html`<h2>Dead letters</h2><p>They cannot be read: ${polled.problem.message}</p>`;
  if (!answer.total) return null;
  return html`<h2>Dead letters</h2>
    <p>${format.plural(answer.total, "record")} failed each time. <code>heron dead-letters ${topology} list</code> works with them.</p>
    <ul>${answer.counts.map((each) => html`<li key=${`${each.component}/${each.source}`}>${format.plural(each.count, "record")} of ${each.source} ${each.component ? `failed in ${each.component}` : "expired"}</li>`)}</ul>
    <${Scrolled} label="Dead letters">
      <table>
        <thead><tr><th scope="col">id</th><th scope="col">failed in</th><th scope="col">from</th><th scope="col">when</th><th scope="col">error</th><th scope="col">values</th></tr></thead>
        <tbody>${answer.items.map((each) => html`<tr key=${each.id}>
          <th scope="row">${each.id}</th>
          <td>${each.component ? `${each.component}/${each.task_id}` : ""}</td><td>${each.source}</td><td>${format.moment(each.failed_s)}</td>
          <td class="words">${each.trace ? html`<details><summary>${each.error}</summary><pre tabindex="0" aria-label="Traceback">${each.trace}</pre></details>` : each.error || (each.outcome === "expired" ? "its tree expired" : "fail() was called")}</td>
          <td class="words">${each.values.join(", ")}</td>
        </tr>`)}</tbody>
      </table>
    <//>`;
}

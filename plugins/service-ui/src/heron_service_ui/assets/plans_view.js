// The versions of the plans, newest first, each with what has changed; and the update that is under way.

import { html } from "./html.js";
import * as format from "./formats.js";
import { Freshness, Scrolled } from "./pieces.js";
import { placeOf, readAll, usePolled } from "./tracker_api.js";

const UNDER_WAY = new Set(["prepare", "switch"]);

export function PlansView({ cluster, topology, status }) {
  const versions = usePolled((signal) => readAll(`${placeOf(cluster, topology)}/plan-versions`, signal), 2, [cluster, topology]);
  const update = status && status.update;
  return html`
    <h2>Plan versions</h2>
    ${update && html`<${Update} update=${update} />`}
    ${!versions.data && html`<${Freshness} polled=${versions} wanted="the plans" />`}
    ${versions.data && !versions.data.items.length && html`<p>The topology has no physical plan yet.</p>`}
    ${versions.data && versions.data.items.length > 0 && html`<${Versions} items=${versions.data.items} />`}
    <p class="legend">These are the newest versions in which something changed since the server of these pages began to watch.${status && status.plan_version ? ` The plan now has version ${format.count(status.plan_version)}.` : ""}${status && status.checkpoints ? " A version that only orders a checkpoint is not in the list." : ""}</p>
  `;
}

export function Update({ update }) {
  const tasks = (numbers, verb) => (numbers.length ? `, ${verb} ${numbers.length > 1 ? "tasks" : "task"} ${numbers.slice(0, 20).join(", ")}${numbers.length > 20 ? ", …" : ""}` : "");
  const going = UNDER_WAY.has(update.phase);
  return html`<p class="notice" role="status">
    Update ${update.number} to packing plan ${update.target} ${going ? "is in the phase" : "is"} ${update.phase}${tasks(update.added, "adds")}${tasks(update.removed, "removes")}${update.waits_for ? `: ${going ? "waits for " : ""}${update.waits_for}` : ""}
  </p>`;
}

function Versions({ items }) {
  return html`<${Scrolled} label="Plan versions">
    <table>
      <thead><tr><th scope="col" class="number">version</th><th scope="col">seen at</th><th scope="col">state</th><th scope="col">packing plan</th><th scope="col">what has changed</th></tr></thead>
      <tbody>
        ${items.map(
          (each) => html`<tr key=${`${each.epoch} ${each.version}`}>
            <th scope="row" class="number">${each.version}</th>
            <td>${format.moment(each.at_s)}</td>
            <td>${each.state}</td>
            <td>${each.packing}</td>
            <td class="words">${each.changes.length
              ? html`<ul class="plain">${each.changes.map((change, at) => html`<li key=${at}>${change}</li>`)}</ul>`
              : "the first version that was seen"}</td>
          </tr>`,
        )}
      </tbody>
    </table>
  <//>`;
}

// Tuples that a task has received and emitted: a table for each stream. Values are texts, and stay texts.

import { html } from "./html.js";
import * as format from "./formats.js";
import { Scrolled } from "./pieces.js";

export function Tuples({ tuples }) {
  return html`<div class="answer">
    <p>From ${format.moment(tuples.began_at_s)}, in ${tuples.lasted_s.toFixed(1)} s.</p>
    <${Direction} what="received" tuples=${tuples.received} />
    <${Direction} what="emitted" tuples=${tuples.emitted} />
  </div>`;
}

function Direction({ what, tuples }) {
  const streams = new Map();
  for (const each of tuples) {
    const key = JSON.stringify([each.component, each.stream, each.fields]);
    streams.set(key, [...(streams.get(key) || []), each]);
  }
  return html`<h4>It has ${what} ${format.plural(tuples.length, "tuple")}</h4>
    ${[...streams.entries()].map(
      ([key, found]) => html`<${Scrolled} key=${key} label=${`Tuples ${what}, stream ${found[0].stream} of ${found[0].component}`}>
        <table>
          <caption>Stream ${found[0].stream} of ${found[0].component}</caption>
          <thead><tr><th scope="col">from task</th>${found[0].fields.map((field) => html`<th key=${field} scope="col">${field}</th>`)}</tr></thead>
          <tbody>
            ${found.map((each, number) => html`<tr key=${number}><th scope="row">${each.task_id}</th>${each.values.map((text, column) => html`<td key=${column} class="words"><code>${text}</code></td>`)}</tr>`)}
          </tbody>
        </table>
      <//>`,
    )}`;
}

// The decisions of the health manager, each with its cause, the evidence and the reason, newest first.

import { html } from "./html.js";
import * as format from "./formats.js";
import { Freshness, State } from "./pieces.js";
import { PERIOD_S, placeOf, readAll, usePolled } from "./tracker_api.js";

export function HealthView({ cluster, topology }) {
  const place = placeOf(cluster, topology);
  const health = usePolled((signal) => readAll(`${place}/health`, signal), PERIOD_S, [place]);
  if (!health.data) return html`<${Freshness} polled=${health} wanted="the decisions" />`;
  const { mode, paused, problem, items } = health.data;
  return html`
    <h2>Decisions of the health manager</h2>
    ${mode
      ? html`<p>Its mode is <strong>${mode}</strong>${paused ? ", and it is paused: it begins nothing" : ""}.</p>`
      : html`<p>No health manager has begun. A section <code>health</code> in the profile starts one.</p>`}
    ${problem && html`<p class="notice bad">It cannot work now: ${problem}</p>`}
    ${mode && !items.length && html`<p>It has decided nothing yet.</p>`}
    <ol class="decisions" reversed>${items.map((each) => html`<${Decision} key=${each.number} decision=${each} />`)}</ol>
  `;
}

function Decision({ decision }) {
  return html`<li value=${decision.number}>
    <p><${State} state=${decision.state} /> <strong>${decision.action}</strong></p>
    <dl class="reasons">
      <dt>when</dt><dd>${format.moment(decision.at_s)}, by the policy ${decision.policy}${decision.undoes ? `; it undoes decision ${decision.undoes}` : ""}</dd>
      <dt>cause</dt><dd>${decision.cause} of ${decision.subject}, confidence ${format.percent(decision.confidence)}</dd>
      <dt>evidence</dt><dd>${decision.evidence.join("; ")}</dd>
      ${decision.reason && html`<dt>reason</dt><dd>${decision.reason}</dd>`}
      ${decision.command && html`<dt>by hand</dt><dd><code>${decision.command}</code></dd>`}
    </dl>
  </li>`;
}

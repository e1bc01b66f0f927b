// What suffers in a topology, since when and why, as `heron explain` finds it out in some seconds.

import { html, useEffect, useRef, useState } from "./vendor/htm-preact.js";
import * as format from "./formats.js";
import { placeOf, read } from "./tracker_api.js";

const UNASKED = { asks: false, answer: null, problem: "" };

export function Explanation({ cluster, topology }) {
  const [state, setState] = useState(UNASKED);
  const control = useRef(null);
  useEffect(() => () => control.current && control.current.abort(), []);
  async function ask() {
    control.current = new AbortController();
    setState({ ...UNASKED, asks: true });
    try {
      setState({ ...UNASKED, answer: await read(`${placeOf(cluster, topology)}/explanation`, control.current.signal) });
    } catch (error) {
      if (error.name !== "AbortError") setState({ ...UNASKED, problem: error.message });
    }
  }
  return html`<div class="explanation">
    <button type="button" disabled=${state.asks} onClick=${ask}>${state.asks ? "Looking for the cause, some seconds…" : "Explain what suffers, and why"}</button>
    <div role="status">
      ${state.problem && html`<p class="notice bad">${state.problem}</p>`}
      ${state.answer && html`<${Answer} answer=${state.answer} />`}
    </div>
  </div>`;
}

function Answer({ answer }) {
  return html`<section class="explained" aria-label="Explanation">
    ${answer.problems.map((each, number) => html`<${Problem} key=${number} problem=${each} />`)}
    ${answer.summary.map((each) => html`<p key=${each}>${each}</p>`)}
    ${answer.unknown.map((each) => html`<p key=${each}>Not known: ${each}</p>`)}
    <p><small>As of ${format.moment(answer.at_s)}.</small></p>
  </section>`;
}

function Problem({ problem }) {
  return html`<div class="notice bad">
    <p><strong>${problem.what}</strong>${problem.since_s === null ? "" : `, since ${format.moment(problem.since_s)}`}</p>
    <dl class="reasons">
      ${problem.why.length > 0 && html`<dt>why</dt><dd>${problem.why.join("; ")}</dd>`}
      ${problem.ruled_out.length > 0 && html`<dt>ruled out</dt><dd>${problem.ruled_out.join("; ")}</dd>`}
      ${(problem.action || problem.command) && html`<dt>to do</dt><dd>${problem.action} ${problem.command && html`<code>${problem.command}</code>`}</dd>`}
    </dl>
  </div>`;
}

// What suffers in a topology, since when and why, as `heron explain` finds it out in some seconds.

import { useEffect, useRef, useState } from "./vendor/htm-preact.js";
import { html } from "./html.js";
import * as format from "./formats.js";
import { concernedPath } from "./pieces.js";
import { placeOf, read } from "./tracker_api.js";

const UNASKED = { asks: false, answer: null, problem: "" };

export function Explanation({ cluster, topology, components }) {
  const [state, setState] = useState(UNASKED);
  const control = useRef(null);
  const button = useRef(null);
  useEffect(() => () => control.current && control.current.abort(), []);
  async function ask() {
    if (state.asks) return; // the button stays enabled, because a disabled one loses the focus
    control.current = new AbortController();
    setState({ ...UNASKED, asks: true });
    try {
      setState({ ...UNASKED, answer: await read(`${placeOf(cluster, topology)}/explanation`, control.current.signal) });
    } catch (error) {
      if (error.name !== "AbortError") setState({ ...UNASKED, problem: error.message });
    }
  }
  function close() {
    setState(UNASKED);
    button.current.focus();
  }
  const shown = Boolean(state.answer || state.problem);
  return html`<div class="explanation" onKeyDown=${(event) => shown && event.key === "Escape" && close()}>
    <button type="button" ref=${button} aria-disabled=${state.asks} onClick=${ask}>${state.asks ? "Looking for the cause, some seconds…" : "Explain what suffers, and why"}</button>
    ${shown && html` <button type="button" onClick=${close}>Close the explanation</button>`}
    <div role="status">
      ${state.problem && html`<p class="notice bad">${state.problem}</p>`}
      ${state.answer && html`<${Answer} answer=${state.answer} pathOf=${(subject) => concernedPath(cluster, topology, concerned(subject, components))} />`}
    </div>
  </div>`;
}

// What the subject of a problem is: a component, a task such as count/3, or a container.
function concerned(subject, components) {
  if (components.includes(subject)) return { component: subject };
  const [, component, task] = /^(.*)\/(\d+)$/s.exec(subject) || [];
  if (components.includes(component)) return { component, task_id: Number(task) };
  return { container_id: Number(subject.match(/^container (\d+)$/)?.[1] || 0) };
}

function Answer({ answer, pathOf }) {
  return html`<section class="explained" aria-label="Explanation">
    ${answer.problems.map((each, number) => html`<${Problem} key=${number} problem=${each} path=${pathOf(each.subject)} />`)}
    ${answer.summary.length > 0 && html`<div class="notice">${answer.summary.map((each) => html`<p key=${each}>${each}</p>`)}</div>`}
    ${answer.unknown.map((each) => html`<p key=${each}>Not known: ${each}</p>`)}
    <p><small>As of ${format.moment(answer.at_s)}.</small></p>
  </section>`;
}

function Problem({ problem, path }) {
  return html`<div class=${problem.gravity > 0 ? "notice bad" : "notice"}>
    <p><strong>${problem.what}</strong>${problem.since_s !== null ? `, since ${format.moment(problem.since_s)}` : problem.observed_s ? `, observed for ${format.duration(problem.observed_s)}` : ""}${path && html` <a class="step" href=${path}>Show ${problem.subject}</a>`}</p>
    <dl class="reasons">
      ${problem.why.length > 0 && html`<dt>why</dt><dd>${problem.why.join("; ")}</dd>`}
      ${problem.ruled_out.length > 0 && html`<dt>ruled out</dt><dd>${problem.ruled_out.join("; ")}</dd>`}
      ${(problem.action || problem.command) && html`<dt>to do</dt><dd>${problem.action} ${problem.command && html`<code>${problem.command}</code>`}</dd>`}
    </dl>
  </div>`;
}

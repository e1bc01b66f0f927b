// What a task shows when it is asked: where its time goes, what its memory holds, its tuples; and where the time of all
// tasks of a component goes. A task is observed once at a time, so a second request is refused with the time that the
// first one still takes.

import { useEffect, useRef, useState } from "./vendor/htm-preact.js";
import { html } from "./html.js";
import { Memory } from "./memory_view.js";
import { Profile } from "./profile_view.js";
import { withQuery } from "./pieces.js";
import { TUPLES_SHOWN, send } from "./tracker_api.js";
import { Tuples } from "./tuples_view.js";

const TIMES = { profile: 10, memory: 5, tuples: 10 }; // seconds
const SAMPLED = "The calls of the thread that runs the component are sampled. This costs the task less than 3 %.";

export function Inside({ place, topology, row, part, visit }) {
  const path = `${place}/tasks/${row.task_id}`;
  const as = (command) => html`As <code>heron ${command} ${topology} ${row.task_id}</code>.`;
  const words = { part, visit, busy: "The task is observed…" };
  return html`
    <${Observed} ...${words} title="Profile" path=${`${path}/profile`} seconds=${TIMES.profile}
      button="Show where its time goes" name="profile" hint=${[SAMPLED, " ", as("profile")]}
      view=${(answer) => html`<${Profile} answer=${answer} />`} />
    <${Observed} ...${words} title="Memory" path=${`${path}/memory`} seconds=${TIMES.memory} least=${0}
      button="Show what its memory holds" name="memory"
      hint=${["Its allocations are traced meanwhile, so a task that allocates much is several times slower. 0 seconds: one look, without the lines. ", as("memory")]}
      view=${(answer) => html`<${Memory} memory=${answer.memory} />`} />
    ${TUPLES_SHOWN && row.shows_tuples &&
    html`<${Observed} ...${words} title="Tuples" path=${`${path}/tuples`} seconds=${TIMES.tuples}
      button="Show the next tuples" name="inspect"
      hint=${["The next ten tuples that it receives and emits, or those that come within this time. ", as("inspect")]}
      view=${(answer) => html`<${Tuples} tuples=${answer.tuples} />`} />`}
  `;
}

// The flame graph of a component: the time of its tasks, summed up.
export function ComponentProfile({ place, component, part, visit }) {
  return html`<${Observed} ...${{ part, visit, busy: "The tasks are observed…" }} title=${`Profile of ${component}`} path=${withQuery(`${place}/profile`, { component })}
    seconds=${TIMES.profile} button="Show where the time of its tasks goes" name="profile"
    hint=${`${SAMPLED} The times of all tasks are summed up. 16 tasks are sampled at a time, and at most 64.`}
    view=${(answer) => html`<${Profile} answer=${answer} />`} />`;
}

function Observed({ title, path, seconds, least = 1, button, busy, name, hint, view, part, visit }) {
  const [wanted, setWanted] = useState(seconds);
  const [state, setState] = useState({ answer: null, problem: "", asks: false });
  const section = useRef(null);
  const submit = useRef(null);
  useEffect(() => {
    if (part !== name) return; // a link leads to the button, which costs the task something
    section.current.scrollIntoView({ block: "start" });
    submit.current.focus({ preventScroll: true });
  }, [part, visit]);
  async function ask(event) {
    event.preventDefault();
    setState({ answer: state.answer, problem: "", asks: true });
    try {
      setState({ answer: await send(`${path}${path.includes("?") ? "&" : "?"}seconds=${wanted}`, {}), problem: "", asks: false });
      requestAnimationFrame(() => section.current && section.current.scrollIntoView({ block: "start" })); // an answer is longer than what is on screen
    } catch (error) {
      setState({ answer: null, problem: error.message, asks: false });
    }
  }
  return html`<section class="observed" ref=${section}>
    <h3>${title}</h3>
    <form class="choices" onSubmit=${ask}>
      <label class="choice">Seconds
        <input type="number" required min=${least} max="60" step="1" value=${wanted} onInput=${(event) => setWanted(event.currentTarget.value)} />
      </label>
      <button type="submit" ref=${submit} disabled=${state.asks}>${state.asks ? busy : button}</button>
    </form>
    <p class="legend">${hint}</p>
    <div role="status">${state.problem && html`<p class="notice bad">${state.problem}</p>`}</div>
    ${state.answer && view(state.answer)}
  </section>`;
}

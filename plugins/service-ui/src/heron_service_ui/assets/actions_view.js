// Changes the topology, where the server was started with --allow-actions. Each action is confirmed by the name.

import { useState } from "./vendor/htm-preact.js";
import { html } from "./html.js";
import * as format from "./formats.js";
import { Choice, Freshness, Scrolled, State } from "./pieces.js";
import { placeOf, read, send, usePolled } from "./tracker_api.js";

const ACTIONS = {
  deactivate: "Pause the spouts",
  activate: "Resume the spouts",
  checkpoint: "Take a checkpoint",
  restart: "Restart containers, one after the other",
  update: "Change the number of tasks of a component",
  kill: "Kill the topology",
};
const NOTHING = { action: "deactivate", container: "", component: "", tasks: "", confirm: "" };

export function ActionsView({ cluster, topology, status }) {
  const path = `${placeOf(cluster, topology)}/actions`;
  const [asked, setAsked] = useState(0); // a new number makes the list be read at once
  const actions = usePolled((signal) => read(path, signal), 2, [path, asked]);
  return html`<div>
    <h2>Actions</h2>
    <${ActionForm} path=${path} topology=${topology} checkpoints=${Boolean(status && status.checkpoints)} components=${status ? status.components : []} onAsked=${() => setAsked((former) => former + 1)} />
    <h2>Actions since the server of these pages began</h2>
    ${!actions.data && html`<${Freshness} polled=${actions} wanted="the actions" />`}
    ${actions.data && !actions.data.items.length && html`<p>There are none.</p>`}
    ${actions.data && actions.data.items.length > 0 && html`<${ActionList} items=${actions.data.items} />`}
  </div>`;
}

// With `only`, the form of one action. Taking a checkpoint is offered only where the topology takes any.
export function ActionForm({ path, topology, components, only = "", checkpoints = false, onAsked }) {
  const nothing = only ? { ...NOTHING, action: only } : NOTHING;
  const [form, setForm] = useState(nothing);
  const [result, setResult] = useState({ text: "", bad: false, asks: false });
  const set = (changes) => setForm((former) => ({ ...former, ...changes }));
  const input = (name) => (event) => set({ [name]: event.currentTarget.value });
  const names = components.map((each) => each.name);
  const component = form.component || names[0] || "";
  async function submit(event) {
    event.preventDefault();
    setResult({ text: "", bad: false, asks: true });
    try {
      await send(path, requestOf({ ...form, component }));
      setForm(nothing);
      setResult({ text: "The action has begun.", bad: false, asks: false });
      onAsked();
    } catch (error) {
      setResult({ text: error.message, bad: true, asks: false });
    }
  }
  return html`<form class="action" onSubmit=${submit}>
    ${!only && html`<${Choice} label="Action" value=${form.action} values=${Object.entries(ACTIONS).filter(([action]) => checkpoints || action !== "checkpoint")} onChange=${(action) => set({ action })} />`}
    <label class="choice" hidden=${form.action !== "restart"}>Container (empty for all)
      <input type="number" min="0" value=${form.container} onInput=${input("container")} />
    </label>
    <span hidden=${form.action !== "update"}>
      <${Choice} label="Component" value=${component} values=${names.map((each) => [each, format.cut(each, 60)])} onChange=${(name) => set({ component: name })} />
      <label class="choice">Tasks <input type="number" min="1" required=${form.action === "update"} value=${form.tasks} onInput=${input("tasks")} /></label>
    </span>
    <p class=${form.action === "kill" ? "notice bad" : "notice"}>${effectOf(form.action, topology, components.find((each) => each.name === component), Number(form.tasks))}</p>
    <label class="choice">Repeat the name of the topology
      <input autocomplete="off" spellcheck="false" required value=${form.confirm} onInput=${input("confirm")} />
    </label>
    <button type="submit" class=${form.action === "kill" ? "danger" : ""} disabled=${result.asks || form.confirm !== topology}>${ACTIONS[form.action]}</button>
    <div role="status">${result.text && html`<p class=${result.bad ? "notice bad" : "notice"}>${result.text}</p>`}</div>
  </form>`;
}

// What the action would change. A person reads it before the name is repeated.
function effectOf(action, topology, component, tasks) {
  if (action === "kill") return `The topology ${topology} ends for good: its processes stop, and its state is removed. Only a new submission starts it again.`;
  if (action === "deactivate") return "The spouts emit nothing until they are resumed. Bolts process what was emitted.";
  if (action === "activate") return "The spouts emit again.";
  if (action === "restart") return "The processes of the containers end and start again. Tuples in flight there are lost or repeated, as the delivery mode says.";
  if (action === "checkpoint") return "The state of all tasks is stored. Data flows on, and nothing else changes.";
  if (!component) return "The components are not known yet.";
  const now = component.parallelism;
  if (!tasks || tasks === now) return `${component.name} has ${format.plural(now, "task")}. Give another number.`;
  const change = tasks > now ? `${format.plural(tasks - now, "task")} would start` : `${format.plural(now - tasks, "task")} would end`;
  return `${component.name} has ${format.plural(now, "task")} and would have ${format.count(tasks)}: ${change}. All other components keep their tasks.`;
}

function requestOf({ action, container, component, tasks, confirm }) {
  if (action === "restart" && container !== "") return { action, confirm, container: Number(container) };
  if (action === "update") return { action, confirm, parallelism: { [component]: Number(tasks) } };
  return { action, confirm };
}

export function ActionList({ items }) {
  return html`<${Scrolled} label="Actions">
    <table>
      <thead><tr><th scope="col">began</th><th scope="col">action</th><th scope="col">of</th><th scope="col">asked by</th><th scope="col">state</th><th scope="col">outcome</th></tr></thead>
      <tbody>
        ${items.map(
          (each) => html`<tr key=${each.number}>
            <td>${format.moment(each.began_at_s)}</td><th scope="row">${each.action}</th><td>${each.detail || "the topology"}</td>
            <td>${each.sender}</td><td><${State} state=${each.state} /></td><td class="words">${each.text}</td>
          </tr>`,
        )}
      </tbody>
    </table>
  <//>`;
}

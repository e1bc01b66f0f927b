// A profile: your lines and the functions with the most time, flame graphs, and the file for speedscope. The graph is made of
// elements, so the policy for content needs no exception, and a name of a function stays text.

import { useMemo, useState } from "./vendor/htm-preact.js";
import { html } from "./html.js";
import * as format from "./formats.js";
import { Scrolled, save, shortPath } from "./pieces.js";

const [WIDTH, ROW, CHARACTER] = [1200, 18, 6.6]; // of the font that inside.css sets
const NARROWEST = 0.4; // a narrower call cannot be seen
const SHOWN = 10;
const NOTABLE = 0.1; // of the time

export function Profile({ answer }) {
  const { profile, lines, functions, task_ids: tasks, missing } = answer;
  const onS = profile.stacks.reduce((sum, each) => sum + each.on_s, profile.other_on_s);
  const whole = profile.lasted_s || 1;
  const own = functions.filter((each) => each.function.origin === "user");
  const others = functions.filter((each) => each.function.origin !== "user" && each.self_s > 0);
  return html`<div class="answer">
    <p>${format.count(profile.samples)} samples in ${profile.lasted_s.toFixed(1)} s${tasks.length > 0 && ` of ${format.plural(tasks.length, "task")}, summed up`}, from ${format.moment(profile.began_at_s)}: on a processor for ${format.percent(onS / whole)} of the time.</p>
    ${missing.length > 0 && html`<ul class="troubles">${missing.map((each) => html`<li key=${each}>Not in it: ${each}</li>`)}</ul>`}
    <${Lines} lines=${lines} whole=${whole} />
    <${Functions} label="Your functions, on a processor" times=${own} whole=${whole} />
    <${Functions} label="Functions of libraries and the engine, on a processor" times=${others} whole=${whole} />
    <${Flame} key=${`on ${profile.began_at_s}`} profile=${profile} on=${true} label="On a processor" />
    <${Flame} key=${`off ${profile.began_at_s}`} profile=${profile} on=${false} label="Off a processor: it waits" />
    <p class="legend">The outermost call is at the bottom, and the width is time. Click a call to enlarge it. <span class="key user">your code</span> <span class="key library">libraries</span> <span class="key engine">engine</span></p>
    <p><button type="button" onClick=${() => download(answer)}>Download for speedscope</button></p>
  </div>`;
}

// The time of a line is that of what it calls, too; the shares are of the time of the profile.
function Lines({ lines, whole }) {
  if (!lines.length) return html`<h4>Your lines</h4><p>The thread was in none of them.</p>`;
  const share = (each) => (each.on_s + each.off_s) / whole;
  const [first] = lines;
  return html`${share(first) >= NOTABLE &&
    html`<p class="guilty">${format.percent(share(first))} of the time at <b>${shortPath(first.file)}, line ${first.line}</b>, in ${first.function}, ${first.on_s >= first.off_s ? "mostly on a processor" : "mostly waiting"}<br /><code>${first.source}</code></p>`}
    <h4>Your lines</h4>
    <${Scrolled} label="Your lines">
      <table>
        <thead><tr><th scope="col">line</th><th scope="col">source</th><th scope="col" class="number">of the time</th><th scope="col" class="number">on a processor</th><th scope="col" class="number">waiting</th></tr></thead>
        <tbody>
          ${lines.slice(0, SHOWN).map(
            (each) => html`<tr key=${`${each.file} ${each.line} ${each.function}`}>
              <th scope="row" title=${`${each.file}, in ${each.function}`}>${shortPath(each.file)}, line ${each.line}</th>
              <td class="words"><code>${each.source || "–"}</code></td>
              <td class="number">${format.percent(share(each))}</td><td class="number">${format.percent(each.on_s / whole)}</td><td class="number">${format.percent(each.off_s / whole)}</td>
            </tr>`,
          )}
        </tbody>
      </table>
    <//>`;
}

function Functions({ label, times, whole }) {
  if (!times.length) return html`<h4>${label}</h4><p>None.</p>`;
  return html`<h4>${label}</h4>
    <${Scrolled} label=${label}>
      <table>
        <thead><tr><th scope="col">function</th><th scope="col" class="number">itself</th><th scope="col" class="number">with calls</th><th scope="col">busiest line</th></tr></thead>
        <tbody>
          ${times.slice(0, SHOWN).map(
            (each) => html`<tr key=${`${each.function.name} ${each.function.file}`}>
              <th scope="row">${each.function.name}</th>
              <td class="number">${format.percent(each.self_s / whole)}</td><td class="number">${format.percent(each.total_s / whole)}</td>
              <td title=${each.function.file}>${shortPath(each.function.file)}, line ${each.line}</td>
            </tr>`,
          )}
        </tbody>
      </table>
    <//>`;
}

// A call fills the graph when it is clicked. With the keyboard, the arrows go from call to call, Enter enlarges the one that
// has the cursor, and Escape shows all again.
function Flame({ profile, on, label }) {
  const root = useMemo(() => callTree(profile, on), [profile, on]);
  const [zoomed, zoom] = useState(root);
  const [here, move] = useState(root);
  const shown = [...pathTo(zoomed).slice(0, -1), zoomed]; // what has called it stays below, in full width
  const boxes = shown.slice(0, -1).map((call, depth) => ({ call, x: 0, depth, width: WIDTH }));
  if (root.seconds > 0) lay(zoomed, 0, shown.length - 1, WIDTH / zoomed.seconds, boxes);
  const rows = boxes.reduce((most, each) => Math.max(most, each.depth + 1), 1);
  const height = rows * ROW;
  const visible = new Set(boxes.map((each) => each.call));
  const cursor = visible.has(here) ? here : zoomed;
  const enlarge = (call) => {
    zoom(call);
    move(call);
  };
  function pressed(event) {
    if (event.key === "Enter") enlarge(cursor);
    else if (event.key === "Escape") enlarge(root);
    else {
      const next = neighbour(cursor, event.key);
      if (next === undefined) return;
      if (next && visible.has(next)) move(next);
    }
    event.preventDefault();
  }
  const told = (call) => `${call.name}${call.file && ` (${call.file})`}: ${call.seconds.toFixed(3)} s, ${format.percent(call.seconds / root.seconds)}`;
  return html`<h4>${label}: ${root.seconds.toFixed(2)} s</h4>
    ${root.seconds > 0 &&
    html`<p class="at-call" role="status">${told(cursor)} ${zoomed !== root && html`<button type="button" onClick=${() => enlarge(root)}>Show all calls</button>`}</p>
    <div class="scrolled" role="group" aria-label=${`Flame graph: ${label}. The arrow keys go from call to call, Enter enlarges a call, Escape shows all.`} tabindex="0" onKeyDown=${pressed}>
      <svg class="flame" viewBox=${`0 0 ${WIDTH} ${height}`} width=${WIDTH} height=${height} role="img" aria-label=${`Flame graph: ${label}`}>
        ${boxes.map((each, number) => {
          const y = height - (each.depth + 1) * ROW;
          const room = Math.floor((each.width - 6) / CHARACTER);
          return html`<g key=${number} class=${`${each.call.origin}${each.call === cursor ? " here" : ""}`} onClick=${() => enlarge(each.call)}>
            <title>${told(each.call)}</title>
            <rect x=${each.x.toFixed(2)} y=${y} width=${each.width.toFixed(2)} height=${ROW - 1} rx="1" />
            ${room > 2 && html`<text x=${(each.x + 3).toFixed(2)} y=${y + ROW - 5}>${format.cut(each.call.name, room)}</text>`}
          </g>`;
        })}
      </svg>
    </div>`}`;
}

// The calls from the outermost to this one.
function pathTo(call) {
  return call.caller ? [...pathTo(call.caller), call] : [call];
}

// The calls of a call in the order of the graph.
function ordered(call) {
  return [...call.calls.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
}

// The call to which an arrow leads, up to what it calls most; null at an edge, undefined for another key.
function neighbour(call, key) {
  if (key === "ArrowDown") return call.caller;
  if (key === "ArrowUp") return [...call.calls.values()].sort((one, other) => other.seconds - one.seconds)[0] || null;
  if (key !== "ArrowLeft" && key !== "ArrowRight") return undefined;
  const beside = call.caller ? ordered(call.caller) : [call];
  return beside[beside.indexOf(call) + (key === "ArrowRight" ? 1 : -1)] || null;
}

// The calls with their seconds; lines of one function are one call, as `heron profile` shows them.
export function callTree(profile, on) {
  const root = { name: "all", file: "", origin: "engine", seconds: 0, calls: new Map(), caller: null };
  for (const stack of profile.stacks) {
    const seconds = on ? stack.on_s : stack.off_s;
    if (seconds <= 0) continue;
    root.seconds += seconds;
    let call = root;
    for (const index of stack.frames) {
      const { function: name, file, origin } = profile.frames[index];
      const key = `${name}\n${file}`;
      if (!call.calls.has(key)) call.calls.set(key, { name, file, origin, seconds: 0, calls: new Map(), caller: call });
      call = call.calls.get(key);
      call.seconds += seconds;
    }
  }
  return root;
}

function lay(call, x, depth, scale, boxes) {
  const width = call.seconds * scale;
  if (width < NARROWEST) return;
  boxes.push({ call, x, depth, width });
  for (const each of ordered(call)) {
    lay(each, x, depth + 1, scale, boxes);
    x += each.seconds * scale;
  }
}

function download({ profile, speedscope }) {
  const name = `${profile.topology}-${profile.task_id || profile.component}.speedscope.json`;
  save(name, new Blob([JSON.stringify(speedscope)], { type: "application/json" }));
}

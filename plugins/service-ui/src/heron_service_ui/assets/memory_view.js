// The memory of a task: the lines that allocate, what holds it, its types, and its large buffers.

import { html } from "./html.js";
import * as format from "./formats.js";
import { Scrolled, shortPath } from "./pieces.js";

const SHOWN = 15;
const NOTABLE = 0.1; // of the growth of the process

export function Memory({ memory }) {
  const { first, second } = memory;
  const own = memory.lines.filter((each) => each.origin === "user");
  const others = memory.lines.filter((each) => each.origin !== "user");
  const share = second.share === 1 ? "" : second.share ? `, estimated from ${format.percent(second.share)} of the containers` : ", which were not counted";
  return html`<div class="answer">
    <p>
      At ${format.moment(second.at_s)} the process has ${format.bytes(second.resident_bytes)} of memory${memory.traced_s > 0 && `, ${signed(second.resident_bytes - first.resident_bytes)} since the first look`}.
      Python's objects account for about ${format.bytes(second.objects_bytes)} of it${share}; ${format.bytes(second.file_bytes)} belong to files, such as the code of libraries.
    </p>
    ${memory.notes.map((each) => html`<p key=${each} class="notice">${each}</p>`)}
    <${Growing} memory=${memory} />
    <${Table} label="What holds memory" heads=${["name", "type", "holds", "grown", "entries", "new entries"]} rows=${memory.held.slice(0, SHOWN).map((each) => [
      each.name, each.type, `${each.at_least ? "over " : ""}${format.bytes(each.held_bytes)}`, signed(each.grown_bytes), each.entries === null ? "–" : exact(each.entries), each.entries === null ? "–" : signedCount(each.grown_entries),
    ])} words=${2} />
    ${memory.traced_s > 0 && html`<${Lines} label="Your lines that hold memory" lines=${own} /><${Lines} label="Lines of libraries and the engine that hold memory" lines=${others} />`}
    <${Table} label="Types" heads=${["type", "size", "grown", "objects", "new objects"]} rows=${memory.types.slice(0, SHOWN).map((each) => [
      each.name, format.bytes(each.own_bytes), signed(each.grown_bytes), exact(each.objects), signedCount(each.grown_objects),
    ])} words=${1} />
    ${memory.buffers.length > 0 &&
    html`<${Table} label="Large buffers" heads=${["type", "held by", "size"]} rows=${memory.buffers.slice(0, SHOWN).map((each) => [each.type, each.held_by || "–", format.bytes(each.size_bytes)])} words=${2} />`}
  </div>`;
}

// What grows most, with the lines that use it. Without one, the line of the author that allocates a good part of the growth:
// received tuples are allocated by the engine, so the line that keeps them may have
// allocated next to nothing. Of the lines that use a name, the one that allocates comes first.
function Growing({ memory }) {
  const grows = Math.max(1, memory.second.resident_bytes - memory.first.resident_bytes);
  const held = [...memory.held].sort((one, other) => other.grown_bytes - one.grown_bytes)[0];
  if (held && held.grown_bytes >= NOTABLE * grows && held.grown_bytes > 0) {
    const entries = held.grown_entries > 0 ? `, ${signedCount(held.grown_entries)} entries` : "";
    const grown = new Map(memory.lines.map((each) => [`${each.file} ${each.line}`, each.grown_bytes]));
    const lines = [...(held.used_at ?? [])].sort((one, other) => (grown.get(`${other.file} ${other.line}`) || 0) - (grown.get(`${one.file} ${one.line}`) || 0));
    return html`<div class="guilty">
      <b>${held.name}</b> grows most: ${signed(held.grown_bytes)}${entries}
      ${lines.map((each) => html`<p key=${each.line}><b>${shortPath(each.file)}, line ${each.line}</b><br /><code>${each.source}</code></p>`)}
    </div>`;
  }
  const line = memory.lines.find((each) => each.origin === "user" && each.grown_bytes >= NOTABLE * grows);
  return line && html`<p class="guilty">It grows most at <b>${shortPath(line.file)}, line ${line.line}</b><br /><code>${line.source}</code></p>`;
}

function Lines({ label, lines }) {
  if (!lines.length) return html`<h4>${label}</h4><p>None.</p>`;
  return html`<h4>${label}</h4>
    <${Table} label=${label} hidden=${true} heads=${["line", "source", "grown", "holds", "blocks"]} rows=${lines.slice(0, SHOWN).map((each) => [
      `${shortPath(each.file)}, line ${each.line}`, each.source, signed(each.grown_bytes), format.bytes(each.held_bytes), exact(each.held_blocks),
    ])} words=${2} />`;
}

// A table of texts; the columns behind the first `words` are numbers.
function Table({ label, heads, rows, words, hidden = false }) {
  const kind = (column) => (column < words ? "words" : "number");
  return html`${!hidden && html`<h4>${label}</h4>`}
    ${rows.length
      ? html`<${Scrolled} label=${label}>
          <table>
            <thead><tr>${heads.map((each, column) => html`<th key=${each} scope="col" class=${kind(column)}>${each}</th>`)}</tr></thead>
            <tbody>
              ${rows.map((row, number) => html`<tr key=${number}>${row.map((text, column) => (column ? html`<td key=${column} class=${kind(column)}>${text}</td>` : html`<th key=${column} scope="row">${text}</th>`))}</tr>`)}
            </tbody>
          </table>
        <//>`
      : html`<p>None.</p>`}`;
}

function signed(value) {
  return `${value > 0 ? "+" : ""}${format.bytes(value)}`;
}

function signedCount(value) {
  return `${value > 0 ? "+" : ""}${exact(value)}`;
}

function exact(value) {
  return value.toLocaleString("en");
}

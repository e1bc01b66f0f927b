// The logs of a task or of another process, from the files of the server's machine: followed, searched, and saved.

import { useEffect, useRef, useState } from "./vendor/htm-preact.js";
import { isManager } from "./engine_metrics.js";
import { html } from "./html.js";
import * as format from "./formats.js";
import { MetricsTable } from "./metrics_table.js";
import { Freshness, SaveButton, save, viewPath, withQuery } from "./pieces.js";
import { LOGS_SHOWN, OF_RUN, placeOf, read, readFile, usePolled } from "./tracker_api.js";

const LOG_S = 2;
const SEARCH_S = 10; // a search reads all files
const SIZES_S = 10; // of the files
const MOST_MARKS = 200; // of a line

// The page of a process such as stmgr-1: its logs and metrics.
export function ProcessView({ cluster, topology, process, query, go }) {
  const path = viewPath(cluster, topology, "process", process);
  return html`<h2>Logs of ${process}</h2>
    ${LOGS_SHOWN
      ? html`<${Logs} of=${process} files=${withQuery(`${placeOf(cluster, topology)}/log-files`, { process })} path=${`${placeOf(cluster, topology)}/processes/${encodeURIComponent(process)}/logs`} search=${query.get("search") || ""} find=${(text) => go(withQuery(path, { search: text }), { replace: true })} />`
      : html`<${NoLogs} command=${`heron logs ${topology} --follow`} />`}
    <h2>Metrics of ${process}</h2>
    <${MetricsTable} cluster=${cluster} topology=${topology} label=${`Metrics of ${process}`} of=${{ process }} shown=${isManager(process) ? { process } : null} />
    <p><a href=${viewPath(cluster, topology, "containers")}>All processes, by container</a></p>`;
}

export function NoLogs({ command }) {
  return html`<p>${OF_RUN ? "The page of a run shows no logs: the run prints the output of its tasks." : html`<code>heron ui --logs</code> shows them here.`} On the machine of the logs: <code>${command}</code></p>`;
}

export function Logs({ of, path: place, files, search, find }) {
  const path = withQuery(place, { lines: 500, search });
  const logs = usePolled((signal) => read(path, signal), search ? SEARCH_S : LOG_S, [path]);
  const [following, setFollowing] = useState(true);
  const [wanted, setWanted] = useState(search);
  const box = useRef(null);
  const items = logs.data ? logs.data.items : [];
  useEffect(() => {
    if (following && box.current) box.current.scrollTop = box.current.scrollHeight;
  });
  return html`<div>
    <form class="choices" role="search" onSubmit=${(event) => { event.preventDefault(); find(wanted); }}>
      <label class="choice">Find in all lines <input type="search" maxlength="1000" value=${wanted} onInput=${(event) => setWanted(event.currentTarget.value)} /></label>
      <button type="submit">Find</button>
      ${search && html`<button type="button" onClick=${() => { setWanted(""); find(""); }}>Show all</button>`}
    </form>
    <${Files} path=${files} />
    ${logs.data ? html`<${Lines} ...${{ of, logs, items, box, following, setFollowing, search }} />` : html`<${Freshness} polled=${logs} wanted="the logs" />`}
  </div>`;
}

// The files as they are on the disk, with their older parts. The token of the page cannot be in a link, so a script reads them.
function Files({ path }) {
  const files = usePolled((signal) => read(path, signal), SIZES_S, [path]);
  const [problem, setProblem] = useState("");
  async function keep(name) {
    setProblem("");
    try {
      save(name, await readFile(`${path.split("?")[0]}/${encodeURIComponent(name)}`));
    } catch (error) {
      setProblem(error.message);
    }
  }
  const items = files.data ? files.data.items.filter((each) => each.size_bytes > 0) : [];
  return html`<p class="choices" hidden=${!items.length}>Save a whole file: ${items.map((each) => html`<button key=${each.name} type="button" onClick=${() => keep(each.name)}>${each.name}, ${format.bytes(each.size_bytes)}</button> `)}</p>
    <div role="status">${problem && html`<p class="notice bad">${problem}</p>`}</div>`;
}

function Lines({ of, logs, items, box, following, setFollowing, search }) {
  return html`<div>
    <label class="choice"><input type="checkbox" checked=${following} onChange=${(event) => setFollowing(event.currentTarget.checked)} /> Follow</label>
    ${items.length > 0 && html`<${SaveButton} name=${`${of.replace(/[^\w.-]/g, "-")}.log`} text="Save these lines" content=${() => items.map(textOf).join("\n")} />`}
    ${logs.problem && html`<p class="notice bad" role="status">${logs.problem.message}</p>`}
    <div class="log" ref=${box} tabindex="0" role="log" aria-label=${`Log of ${of}`} aria-live="off">
      ${items.map((each, number) => html`<div key=${number} class=${`line ${each.level.toLowerCase()}`}>${headOf(each)}${marked(each.text, search)}${each.error ? ["\n", marked(each.error, search)] : ""}</div>`)}
      ${!items.length && (search ? "No line has that text." : "The logs are empty.")}
    </div>
  </div>`;
}

// When a line was logged, and its level; what a component printed has neither.
function headOf({ at, level }) {
  return at ? `${at.slice(0, 23).replace("T", " ")} ${level} ` : "";
}

function textOf(line) {
  return `${headOf(line)}${line.text}${line.error ? `\n${line.error}` : ""}`;
}

// The text with each place of the searched one marked; both stay text.
function marked(text, search) {
  const [inText, inSearch] = [text.toLowerCase(), search.toLowerCase()];
  if (!search || inText.length !== text.length) return text; // in some scripts, case changes the length
  const parts = [];
  let from = 0;
  for (let at = inText.indexOf(inSearch); at >= 0 && parts.length < MOST_MARKS; at = inText.indexOf(inSearch, from)) {
    parts.push(text.slice(from, at), html`<mark>${text.slice(at, at + search.length)}</mark>`);
    from = at + search.length;
  }
  return [...parts, text.slice(from)];
}

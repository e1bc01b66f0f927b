// The graph of a topology with its present rates, and the same values as a table.

import { useEffect, useMemo, useState } from "./vendor/htm-preact.js";
import { html } from "./html.js";
import * as format from "./formats.js";
import { shownGraph, titleOf } from "./large_graph.js";
import { Freshness, Scrolled, heat, strain, viewPath, withQuery, worse } from "./pieces.js";
import { PERIOD_S, placeOf, read, usePolled } from "./tracker_api.js";

const NODE = { width: 210, height: 108 };
const NAME_LENGTH = 24; // characters that fit into a node; the table has the whole name
const WIDEST = 12; // pixels of the edge with the greatest volume
const NARROW = 700; // pixels; the graph of a phone goes down

const SMALLEST = 0.75; // of its size; a graph that is still too wide scrolls, because its texts must be readable
const MUCH = 0.5; // twice the memory of the other tasks

const BLOCKED = 0.2; // a share of time that is worth a word in the graph

const BUSY = {
  "task-time": "share of time with work",
  processor: "processor time of its processes",
  "": "not known",
};

export function FlowView({ cluster, topology, ended, query, go }) {
  const dagre = useDagre();
  const flow = usePolled((signal) => read(`${placeOf(cluster, topology)}/flow`, signal), PERIOD_S, [cluster, topology]);
  if (!flow.data) return html`<${Freshness} polled=${flow} wanted="the graph" />`;
  const { nodes, edges } = flow.data;
  const find = query.get("find") || "";
  const open = (query.get("open") || "").split(",").filter(Boolean);
  const path = viewPath(cluster, topology, "graph");
  const shown = shownGraph(nodes, edges, find, open);
  const pathOf = (node) => (node.members ? withQuery(path, { open: [...open, node.depth].join(",") }) : componentPath(cluster, topology, node.name));
  const listed = shown.matches ? nodes.filter((each) => shown.matches.has(each.name)) : nodes;
  return html`
    <h2>Graph</h2>
    ${shown.levels && html`<${LargeGraph} ...${{ shown, find, open, path, go }} total=${nodes.length} />`}
    ${nodes.length > 0 && !edges.length && nodes.length > 1 && html`<p class="notice" role="status">The streams are not known${ended ? ": the topology had ended before they were read" : " yet"}.</p>`}
    ${nodes.length > 0 && !shown.nodes.length ? html`<p role="status">No component has ${find} in its name.</p>` : html`<${Graph} dagre=${dagre} nodes=${shown.nodes} edges=${shown.edges} pathOf=${pathOf} />`}
    <p class="legend">
      The width of a stream is its volume. The shade of a component is the share of time in which its busiest task is busy, of a spout without the time in which it is blocked:
      ${[0, 0.2, 0.4, 0.6, 0.8, 0.99].map((share) => html`<span key=${share} class=${`shade ${heat(share)}`}>${format.percent(Math.floor(share * 6) / 6)}</span>`)}
    </p>
    <h2>Components</h2>
    <${Components} nodes=${listed} pathOf=${(name) => componentPath(cluster, topology, name)} />
    ${edges.length > 0 && html`<h2>Streams</h2>${shown.levels ? html`<${FoldedStreams} edges=${find ? shown.edges : edges} />` : html`<${Streams} edges=${edges} />`}`}
  `;
}

// The choices for a graph that cannot be read at once. Its addresses have them.
function LargeGraph({ shown, find, open, path, go, total }) {
  const [wanted, setWanted] = useState(find);
  const all = shown.levels.join(",");
  return html`<form class="choices" role="search" onSubmit=${(event) => { event.preventDefault(); go(withQuery(path, { find: wanted.trim() }), { replace: true }); }}>
      <label class="choice">Find components <input type="search" maxlength="200" value=${wanted} onInput=${(event) => setWanted(event.currentTarget.value)} /></label>
      <button type="submit">Find</button>
      ${find ? html`<button type="button" onClick=${() => { setWanted(""); go(path, { replace: true }); }}>Show the levels</button>` : html`
        <button type="button" disabled=${open.join(",") === all} onClick=${() => go(withQuery(path, { open: all }), { replace: true })}>Open all levels</button>
        <button type="button" disabled=${!open.length} onClick=${() => go(path, { replace: true })}>Close the levels</button>`}
    </form>
    <p class="legend">${find
      ? `${shown.matches.size} of ${total} components match, and are shown with those that they read and those that read them.`
      : `The ${total} components are in ${shown.levels.length} levels, by the longest way from a spout. Choose a level to see its components. What is in trouble is shown by itself.`}</p>`;
}

// Many rows, which nobody may want to see.
function FoldedStreams({ edges }) {
  const [isOpen, setOpen] = useState(false);
  return html`<details onToggle=${(event) => setOpen(event.currentTarget.open)}><summary>${format.plural(edges.length, "stream")}</summary>${isOpen && html`<${Streams} edges=${edges} />`}</details>`;
}

function componentPath(cluster, topology, component) {
  return withQuery(viewPath(cluster, topology, "tasks"), { component });
}

// The library comes while the page waits for its values.
function useDagre() {
  const [dagre, setDagre] = useState(null);
  useEffect(() => {
    import("./vendor/dagre.js").then((module) => setDagre(() => module));
  }, []);
  return dagre;
}

function useLayout(dagre, nodes, edges) {
  const down = innerWidth < NARROW;
  const key = JSON.stringify([down, nodes.map((each) => each.name), edges.map((each) => [each.source, each.target, each.stream])]);
  return useMemo(() => dagre && placed(dagre, nodes, edges, down), [dagre, key]);
}

function placed(dagre, nodes, edges, down) {
  const graph = new dagre.Graph({ multigraph: true });
  graph.setGraph({ rankdir: down ? "TB" : "LR", nodesep: 34, ranksep: 56, edgesep: 26, marginx: 14, marginy: 22 });
  graph.setDefaultEdgeLabel(() => ({}));
  const known = new Set(nodes.map((each) => each.name));
  for (const each of nodes) graph.setNode(each.name, { ...NODE });
  for (const each of edges) {
    const label = { width: 64, height: 18, labelpos: "c" };
    if (known.has(each.source) && known.has(each.target)) graph.setEdge(each.source, each.target, label, each.stream);
  }
  dagre.layout(graph);
  return graph;
}

function Graph({ dagre, nodes, edges, pathOf }) {
  const graph = useLayout(dagre, nodes, edges);
  if (!graph || !nodes.length) return html`<p>The graph is being laid out…</p>`;
  const { width, height } = graph.graph();
  const most = Math.max(...edges.map((each) => each.rate_per_s || 0), 1e-9);
  return html`<${Scrolled} label="Graph of the topology; the tables below have the same values">
    <svg class="graph" width=${width} height=${height} style=${{ minWidth: `${Math.round(SMALLEST * width)}px` }} viewBox=${`0 0 ${width} ${height}`} role="group" aria-label="Graph">
      <defs>
        <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto">
          <path d="M0,0 L8,4 L0,8 z" class="arrow" />
        </marker>
      </defs>
      ${edges.map((each) => html`<${Edge} key=${`${each.source} ${each.target} ${each.stream}`} edge=${each} most=${most} at=${graph.edge(each.source, each.target, each.stream)} />`)}
      ${nodes.map((each) => html`<${each.members ? Level : Node} key=${each.name} node=${each} at=${graph.node(each.name)} path=${pathOf(each)} />`)}
    </svg>
  <//>`;
}

function Edge({ edge, most, at }) {
  if (!at) return null;
  const rate = edge.rate_per_s || 0;
  const width = rate > 0 ? 1.5 + (WIDEST - 1.5) * Math.sqrt(rate / most) : 1;
  const text = edge.rate_per_s === null ? "" : format.rate(rate);
  const about = `${edge.stream} from ${titleOf(edge.source)} to ${titleOf(edge.target)}${edge.streams > 1 ? "" : `, ${edge.grouping}`}: ${text || "not known yet"}`;
  return html`<g class=${rate > 0 ? "edge" : "edge still"}>
    <title>${about}</title>
    <path d=${curve(at.points)} stroke-width=${width.toFixed(1)} marker-end="url(#arrow)" />
    <text x=${at.x} y=${at.y - WIDEST / 2 - 3}>${text}</text>
  </g>`;
}

// A smooth line through the points of the layout.
function curve(points) {
  const [first, ...others] = points;
  let path = `M${first.x.toFixed(1)},${first.y.toFixed(1)}`;
  for (let at = 0; at < others.length - 1; at += 1) {
    const [here, next] = [others[at], others[at + 1]];
    path += ` Q${here.x.toFixed(1)},${here.y.toFixed(1)} ${((here.x + next.x) / 2).toFixed(1)},${((here.y + next.y) / 2).toFixed(1)}`;
  }
  const last = others[others.length - 1];
  return `${path} L${last.x.toFixed(1)},${last.y.toFixed(1)}`;
}

// What is special about a component, in few words: the culprit before those whom it holds back. A node has room for the
// name of one; its title has all.
function note(node, all = false) {
  const [tasks, others] = [node.culprits, node.held_back_by];
  if (tasks.length) return `back pressure by ${tasks.length === 1 || all ? `task ${tasks.join(", ")}` : `${tasks.length} tasks`}`;
  if (others.length) return `held back by ${others.length === 1 || all ? others.join(", ") : `${others.length} components`}`;
  if (node.running < node.parallelism) return `${node.running} of ${node.parallelism} tasks run`;
  return node.errors ? format.plural(node.errors, "error") : "";
}

function Node({ node, at, path }) {
  const [left, top] = [at.x - NODE.width / 2, at.y - NODE.height / 2];
  const marked = node.culprits.length ? " culprit" : node.held_back_by.length ? " held" : "";
  const busy = node.busy_most > node.busy + 0.2 ? `${format.percent(node.busy)}, one task ${format.percent(node.busy_most)}` : format.percent(node.busy);
  const blocked = node.time["user-blocked"] > BLOCKED ? `, blocked ${format.percent(node.time["user-blocked"])}` : "";
  const memory = node.resident_bytes === null ? "" : `, memory ${format.bytes(node.resident_bytes)}${node.parallelism > 1 ? `, the largest task ${format.bytes(node.resident_bytes_most)}` : ""}`;
  const about = `${node.kind} ${node.name}: ${format.rate(node.rate_per_s)}, busy ${busy}${blocked}${memory}${note(node) ? `, ${note(node, true)}` : ""}`;
  return html`<a href=${path} class=${`node ${heat(strain(node, node.busy_most, node.time))}${marked}`}>
    <title>${about}${node.causes.length ? ` (${node.causes.join("; ")})` : ""}</title>
    <rect x=${left} y=${top} width=${NODE.width} height=${NODE.height} rx=${node.kind === "spout" ? 22 : 5} />
    <text class="name" x=${left + 14} y=${top + 22}>${format.cut(node.name, NAME_LENGTH)}</text>
    <text x=${left + 14} y=${top + 42}>${format.rate(node.rate_per_s)} · ${node.parallelism} × ${node.kind}</text>
    <text x=${left + 14} y=${top + 60}>busy ${busy}</text>
    <text class=${excess(node) >= MUCH ? "much" : ""} x=${left + 14} y=${top + 78}>${node.parallelism > 1 ? "largest task" : "memory"} ${format.bytes(node.resident_bytes_most)}</text>
    <text class="note" x=${left + 14} y=${top + 97}>${format.cut(note(node) || `queue ${format.bytes(node.queue_bytes)}`, 26)}</text>
  </a>`;
}

// The components of a level as one node, which is drawn as a pile.
function Level({ node, at, path }) {
  const [left, top] = [at.x - NODE.width / 2, at.y - NODE.height / 2];
  const names = node.members.map((each) => each.name);
  const about = `level ${node.depth}, ${format.plural(names.length, "component")}: ${names.slice(0, 12).join(", ")}${names.length > 12 ? "…" : ""}; ${format.rate(node.rate_per_s)}; the busiest is ${node.busiest}, ${format.percent(node.busy_most)}. Choose it to see them.`;
  return html`<a href=${path} class=${`node level ${heat(strain(node, node.busy_most, node.time))}`}>
    <title>${about}</title>
    <rect x=${left + 6} y=${top + 6} width=${NODE.width - 6} height=${NODE.height - 6} rx="5" />
    <rect x=${left} y=${top} width=${NODE.width - 6} height=${NODE.height - 6} rx="5" />
    <text class="name" x=${left + 14} y=${top + 22}>${`level ${node.depth}: ${format.plural(names.length, "component")}`}</text>
    <text x=${left + 14} y=${top + 42}>${format.rate(node.rate_per_s)} · ${format.plural(node.parallelism, "task")}</text>
    <text x=${left + 14} y=${top + 60}>busiest ${format.percent(node.busy_most)}</text>
    <text x=${left + 14} y=${top + 78}>${format.cut(node.busiest, NAME_LENGTH)}</text>
    <text class="note" x=${left + 14} y=${top + 95}>${`queue ${format.bytes(node.queue_bytes)}`}</text>
  </a>`;
}

// How much more memory the largest task has than the other tasks of the topology.
function excess(node) {
  return node.resident_bytes_others === null ? 0 : worse(node.resident_bytes_most, node.resident_bytes_others);
}

function Components({ nodes, pathOf }) {
  return html`<${Scrolled} label="Components">
    <table>
      <thead>
        <tr>
          <th scope="col">component</th>
          <th scope="col">note</th>
          <th scope="col">kind</th>
          <th scope="col" class="number">tasks</th>
          <th scope="col" class="number">tuples</th>
          <th scope="col" class="number">busy</th>
          <th scope="col" class="number">busiest task</th>
          <th scope="col" class="number">blocked</th>
          <th scope="col" class="number">queue</th>
          <th scope="col" class="number">memory</th>
          <th scope="col" class="number">largest task</th>
          <th scope="col" class="number">mean time</th>
          <th scope="col" class="number">failed</th>
          <th scope="col" class="number">restarts</th>
        </tr>
      </thead>
      <tbody>
        ${nodes.map(
          (each) => html`<tr key=${each.name}>
            <th scope="row"><a href=${pathOf(each.name)}>${each.name}</a></th>
            <td class="note">${note(each)}${each.causes.length ? `: ${each.causes.join("; ")}` : ""}</td>
            <td>${each.kind}</td>
            <td class="number">${each.running < each.parallelism ? `${each.running} of ${each.parallelism}` : each.parallelism}</td>
            <td class="number">${format.rate(each.rate_per_s)}</td>
            <td class=${`number ${heat(strain(each, each.busy, each.time))}`} title=${BUSY[each.busy_from]}>${format.percent(each.busy)}</td>
            <td class=${`number ${heat(strain(each, each.busy_most, each.time))}`}>${format.percent(each.busy_most)}</td>
            <td class="number" title="share of time in your code without running: it sleeps, or waits for a service, a lock or a processor">${format.percent(each.time["user-blocked"])}</td>
            <td class="number">${format.bytes(each.queue_bytes)}</td>
            <td class="number">${format.bytes(each.resident_bytes)}</td>
            <td class=${`number ${each.resident_bytes_most === null ? "" : heat(excess(each))}`} title=${each.resident_bytes_others === null ? "" : `the other tasks of the topology: ${format.bytes(each.resident_bytes_others)}`}>${format.bytes(each.resident_bytes_most)}</td>
            <td class="number">${each.kind === "bolt" ? format.latency(each.latency_s) : "–"}</td>
            <td class="number">${format.count(each.failed)}</td>
            <td class="number">${each.restarts}</td>
          </tr>`,
        )}
      </tbody>
    </table>
  <//>`;
}

function Streams({ edges }) {
  return html`<${Scrolled} label="Streams">
    <table>
      <thead>
        <tr><th scope="col">from</th><th scope="col">to</th><th scope="col">stream</th><th scope="col">grouping</th><th scope="col" class="number">tuples</th></tr>
      </thead>
      <tbody>
        ${edges.map(
          (each) => html`<tr key=${`${each.source} ${each.target} ${each.stream}`}>
            <td>${each.source}</td><td>${each.target}</td><td>${each.stream}</td><td>${each.grouping}</td>
            <td class="number">${format.rate(each.rate_per_s)}</td>
          </tr>`,
        )}
      </tbody>
    </table>
  <//>`;
}

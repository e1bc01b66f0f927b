// What the graph of a large topology shows: its levels, or what a search finds. Small graphs are shown as they are.
//
// A level has the components that are equally many streams away from the spouts, on the longest way. A level is one node
// until a person opens it. Components in trouble are always nodes of their own.

export const LARGE = 24; // components; more of them cannot be read at once

const LEVEL = "\n"; // begins the name of the node of a level: no component has it

// The name of a component, or of a level, as people read it.
export function titleOf(name) {
  return name.startsWith(LEVEL) ? `level ${name.slice(1)}` : name;
}

// What is shown: the nodes, the edges between them, and the levels (null in a small graph). `open` has the levels that
// are opened, as texts; with `find`, only the components whose name has this text are shown, with their neighbours.
export function shownGraph(nodes, edges, find, open) {
  if (nodes.length <= LARGE) return { nodes, edges, levels: null };
  if (find) return { ...found(nodes, edges, find.toLowerCase()), levels: [] };
  const depths = depthsOf(nodes, edges);
  const members = new Map();
  for (const each of nodes) {
    const depth = depths.get(each.name);
    if (!members.has(depth)) members.set(depth, []);
    members.get(depth).push(each);
  }
  const levels = [...members.keys()].sort((one, other) => one - other);
  const shown = [];
  const placeOf = new Map();
  for (const depth of levels) {
    const [own, joined] = divided(members.get(depth), open.includes(String(depth)));
    for (const each of own) placeOf.set(each.name, each.name);
    for (const each of joined) placeOf.set(each.name, `${LEVEL}${depth}`);
    shown.push(...own, ...(joined.length ? [joinedNode(`${LEVEL}${depth}`, depth, joined)] : []));
  }
  return { nodes: shown, edges: joinedEdges(edges, placeOf), levels: levels.map(String) };
}

function found(nodes, edges, text) {
  const matches = new Set(nodes.filter((each) => each.name.toLowerCase().includes(text)).map((each) => each.name));
  const near = edges.filter((each) => matches.has(each.source) || matches.has(each.target));
  const names = new Set([...matches, ...near.flatMap((each) => [each.source, each.target])]);
  return { nodes: nodes.filter((each) => names.has(each.name)), edges: near, matches };
}

// The longest way from a component without inputs. A graph with a cycle ends too.
function depthsOf(nodes, edges) {
  const depths = new Map(nodes.map((each) => [each.name, 0]));
  let changed = true;
  for (let turn = 0; changed && turn < nodes.length; turn += 1) {
    changed = false;
    for (const { source, target } of edges) {
      if (depths.has(source) && depths.has(target) && depths.get(target) <= depths.get(source)) {
        depths.set(target, depths.get(source) + 1);
        changed = true;
      }
    }
  }
  return depths;
}

// The components of a level that are nodes of their own, and those that are one node.
function divided(members, isOpen) {
  if (isOpen) return [members, []];
  const own = members.filter(isInTrouble);
  const others = members.filter((each) => !isInTrouble(each));
  return others.length > 1 ? [own, others] : [members, []];
}

function isInTrouble(node) {
  return Boolean(node.culprits.length || node.held_back_by.length || node.errors || node.running < node.parallelism);
}

function joinedNode(name, depth, members) {
  const busiest = members.reduce((one, other) => ((other.busy_most ?? -1) > (one.busy_most ?? -1) ? other : one));
  const sum = (valueOf) => members.reduce((total, each) => total + (valueOf(each) || 0), 0);
  return {
    ...busiest,
    name,
    depth,
    members,
    busiest: busiest.name,
    parallelism: sum((each) => each.parallelism),
    rate_per_s: sum((each) => each.rate_per_s),
    queue_bytes: sum((each) => each.queue_bytes),
  };
}

// The streams between two nodes are one edge.
function joinedEdges(edges, placeOf) {
  const joined = new Map();
  for (const each of edges) {
    const [source, target] = [placeOf.get(each.source), placeOf.get(each.target)];
    if (!source || !target || source === target) continue;
    const key = `${source}\t${target}\t${source === each.source && target === each.target ? each.stream : ""}`;
    const known = joined.get(key);
    if (!known) joined.set(key, { ...each, source, target, streams: 1 });
    else {
      const rates = [known.rate_per_s, each.rate_per_s].filter((rate) => rate !== null);
      joined.set(key, { ...known, streams: known.streams + 1, rate_per_s: rates.length ? rates.reduce((one, other) => one + other, 0) : null });
    }
  }
  return [...joined.values()].map((each) => (each.streams > 1 ? { ...each, stream: `${each.streams} streams` } : each));
}

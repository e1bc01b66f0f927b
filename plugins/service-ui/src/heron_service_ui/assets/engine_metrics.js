// The engine's metrics that the history keeps by their names, beside those of tasks that every chart has.

import * as format from "./formats.js";

export const OF_ENGINE = "engine/"; // begins their names in the history

const [SHARE, BYTES, BYTES_PER_S, RATE, NUMBER] = [format.percent, format.bytes, (value) => `${format.bytes(value)}/s`, format.rate, format.decimal];
const TEXTS = {
  backlog: NUMBER, "consumed-bytes": BYTES_PER_S, "cpu-seconds": NUMBER, "cpu-wait-s": SHARE, "dead-letter-count": RATE, "dead-letters-dropped": RATE,
  "emit-batch-bytes": BYTES_PER_S, "emit-batch-count": RATE, "execute-batch-count": RATE, "failed-by": RATE, "gc-pause-s": SHARE, "held-back-s": SHARE,
  "in-queue-bytes": BYTES, "out-queue-bytes": BYTES, "output-held-s": SHARE, "replay-bytes": BYTES, "replay-count": RATE, selectivity: NUMBER,
  "task-time-s": SHARE, "true-rate-in": RATE, "true-rate-out": RATE, "user-error-count": RATE,
};
const OF_MANAGERS = {
  "backpressure-s": SHARE, "connections-refused": RATE, "cpu-seconds": NUMBER, "cpu-wait-s": SHARE, "deposed-messages": RATE, "dropped-tuples": RATE,
  "late-acks": RATE, "late-s": SHARE, "outlet-bytes": BYTES, "peer-silent-s": format.latency, "protocol-violations": RATE, "resident-bytes": BYTES,
  "roots-in-flight": NUMBER, "settled-roots": RATE, "unconfirmed-bytes": BYTES, "unroutable-segments": RATE,
};
const OUTCOMES = ["complete", "failed", "expired", "lost"]; // of roots
const USES = ["user-cpu", "user-blocked", "engine", "input", "room", "throttled", "acks", "paused"]; // of a task's time

// Whether a process of the engine is a stream manager; the history has its metrics under this name.
export function isManager(process) {
  return /^stmgr-\d+$/.test(process);
}

// The name in the history of a metric of a task, or of a stream manager; "" where the history does not have it by its name.
export function historyName(name, labels, process = "") {
  if (!(name in (process ? OF_MANAGERS : TEXTS))) return "";
  const part = labels.use || labels.outcome;
  return part ? `${OF_ENGINE}${name}/${part}` : OF_ENGINE + name;
}

// A chart for each of them: title, metrics, text of a value, kinds of components.
const PARTS = { "task-time-s": USES, "settled-roots": OUTCOMES };
export const ENGINE_CHARTS = Object.keys({ ...TEXTS, ...OF_MANAGERS }).flatMap((name) => (PARTS[name] ? PARTS[name].map((part) => `${name}/${part}`) : [name])).map(chartOf);

function chartOf(name) {
  const metric = name.split("/")[0];
  const textOf = TEXTS[metric] || OF_MANAGERS[metric];
  return [`${OF_ENGINE}${name}`, { [OF_ENGINE + name]: "" }, textOf, () => true];
}

// The engine's metrics of tasks that the history keeps by their names, beside those that every chart has.

import * as format from "./formats.js";

export const OF_ENGINE = "engine/"; // begins their names in the history

const [SHARE, BYTES, BYTES_PER_S, RATE, NUMBER] = [format.percent, format.bytes, (value) => `${format.bytes(value)}/s`, format.rate, format.decimal];
const TEXTS = {
  backlog: NUMBER, "consumed-bytes": BYTES_PER_S, "cpu-seconds": NUMBER, "cpu-wait-s": SHARE, "dead-letter-count": RATE, "dead-letters-dropped": RATE,
  "emit-batch-bytes": BYTES_PER_S, "emit-batch-count": RATE, "execute-batch-count": RATE, "failed-by": RATE, "gc-pause-s": SHARE, "held-back-s": SHARE,
  "in-queue-bytes": BYTES, "out-queue-bytes": BYTES, "output-held-s": SHARE, "replay-bytes": BYTES, "replay-count": RATE, selectivity: NUMBER,
  "task-time-s": SHARE, "true-rate-in": RATE, "true-rate-out": RATE, "user-error-count": RATE,
};
const USES = ["user-cpu", "user-blocked", "engine", "input", "room", "throttled", "acks", "paused"]; // of a task's time

// The name in the history of a metric of a task, or "" where the history does not have it by its name.
export function historyName(name, labels) {
  if (!(name in TEXTS)) return "";
  return labels.use ? `${OF_ENGINE}${name}/${labels.use}` : OF_ENGINE + name;
}

// A chart for each of them: title, metrics, text of a value, kinds of components.
export const ENGINE_CHARTS = Object.keys(TEXTS).flatMap((name) => (name === "task-time-s" ? USES.map((use) => `${name}/${use}`) : [name])).map(chartOf);

function chartOf(name) {
  const textOf = TEXTS[name.split("/")[0]];
  return [`${OF_ENGINE}${name}`, { [OF_ENGINE + name]: "" }, textOf, () => true];
}

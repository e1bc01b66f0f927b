// What is marked on charts: events of the tracker and decisions of the health manager. Pure.

// The letter above the line, what it stands for, and the gaps of the line: none is told by its colour alone.
export const MARKS = {
  plan: ["P", "plan or state changed", [8, 3]],
  death: ["D", "a process died, a checkpoint failed, or a restore", []],
  pressure: ["B", "back pressure", [2, 4]],
  health: ["H", "health decision", [10, 3, 2, 3]],
  other: ["E", "error or other event", [4, 4]],
};
const KINDS = [
  [/^(plan-changed|state-changed|update-|task-added|task-removed)/, "plan"],
  [/^(process-|checkpoint-failed|task-(failed|down|restarting)|leader-changed|restored)/, "death"],
  [/^back-pressure-/, "pressure"],
];
const HIDDEN = new Set(["topology-seen", "task-running", "task-starting", "process-running"]);

// The mark of an event or a decision; null where it is not worth a line.
export function markOf(each) {
  if (each.action !== undefined) return { at: each.at_s, kind: "health", text: `health manager, ${each.state}: ${each.action}, because of ${each.cause} of ${each.subject}` };
  if (HIDDEN.has(each.kind)) return null;
  const found = KINDS.find(([pattern]) => pattern.test(each.kind));
  return { at: each.at_s, kind: found ? found[1] : "other", text: [each.kind, each.subject, each.text].filter(Boolean).join(" ") };
}

export function marksNear(marks, at, tolerance) {
  return marks.filter((each) => Math.abs(each.at - at) <= tolerance);
}

// Numbers, sizes and times as people read them. Every function takes null and undefined, and returns "–" for them.

const NONE = "–";

function known(value) {
  return value !== null && value !== undefined && Number.isFinite(value);
}

// Three digits that count, never as a power of ten.
function digits(value) {
  return Math.abs(value) >= 99.95 ? String(Math.round(value)) : value.toPrecision(3);
}

// 1234567 → "1.23 M"; exact below ten thousand.
export function count(value) {
  if (!known(value)) return NONE;
  const size = Math.abs(value);
  if (size < 10_000) return Math.round(value).toLocaleString("en");
  const [unit, by] = size < 1e6 ? ["k", 1e3] : size < 1e9 ? ["M", 1e6] : ["G", 1e9];
  return `${digits(value / by)} ${unit}`;
}

// As `count`, with three digits of a number that is not whole.
export function decimal(value) {
  return known(value) && !Number.isInteger(value) && Math.abs(value) < 1000 ? digits(value) : count(value);
}

export function rate(value) {
  if (!known(value)) return NONE;
  return value > 0 && value < 10 ? `${value.toFixed(1)}/s` : `${count(value)}/s`;
}

export function bytes(value) {
  if (!known(value)) return NONE;
  let [size, unit] = [value, "B"];
  for (const next of ["KiB", "MiB", "GiB", "TiB"]) {
    if (Math.abs(size) < 1024) break;
    [size, unit] = [size / 1024, next];
  }
  return unit === "B" ? `${Math.round(size)} B` : `${digits(size)} ${unit}`;
}

export function percent(value) {
  return known(value) ? `${Math.round(value * 100)} %` : NONE;
}

// A short duration, such as a latency.
export function latency(seconds) {
  if (!known(seconds)) return NONE;
  if (seconds === 0) return "0 s";
  if (seconds < 1e-3) return `${digits(seconds * 1e6)} µs`;
  if (seconds < 1) return `${digits(seconds * 1e3)} ms`;
  return `${digits(seconds)} s`;
}

// A long duration, such as an age.
export function duration(seconds) {
  if (!known(seconds)) return NONE;
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86_400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86_400)} d ${Math.floor((whole % 86_400) / 3600)} h`;
}

// A moment in the time zone of the person who looks.
export function moment(wallSeconds) {
  if (!known(wallSeconds)) return NONE;
  return new Date(wallSeconds * 1000).toLocaleString(undefined, { dateStyle: "short", timeStyle: "medium" });
}

export function cut(text, length) {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

export function plural(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

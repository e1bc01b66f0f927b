// The `html` of all views. Names, errors and records come from files and users of others. Marks of direction in them can
// show a line in another order than it has, so texts that people read have a sign in place of such marks.

import { html as made } from "./vendor/htm-preact.js";

const CONTROL = /[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;
const READ = /(^|\s)(title|aria-label|aria-valuetext|label|placeholder)=$/;
const places = new WeakMap(); // by template

export function plain(text) {
  return text.replace(CONTROL, "\ufffd");
}

export function html(strings, ...values) {
  if (!places.has(strings)) places.set(strings, placesOf(strings));
  const read = places.get(strings);
  return made(strings, ...values.map((value, at) => (read[at] ? shown(value) : value)));
}

// For each value, whether people read it: it is between two tags, or an attribute of `READ`. A path or a key is not.
function placesOf(strings) {
  let before = "";
  return strings.map((each) => {
    before += each;
    return before.lastIndexOf(">") >= before.lastIndexOf("<") || READ.test(before);
  });
}

function shown(value) {
  if (Array.isArray(value)) return value.map(shown);
  return typeof value === "string" ? plain(value) : value;
}

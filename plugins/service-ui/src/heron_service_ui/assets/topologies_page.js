// The first page: every topology of every cluster, with what is wrong in words.

import { useState } from "./vendor/htm-preact.js";
import { html } from "./html.js";
import * as format from "./formats.js";
import { Freshness, Scrolled, Sparkline, State, Trouble, hasEnded, isOld, viewPath } from "./pieces.js";
import { PERIOD_S, placeOf, read, readAll, usePolled, useSeconds } from "./tracker_api.js";

const HISTORY_S = 10; // a sparkline of 15 minutes changes slowly
const CHARTS = 40; // of the first topologies; each is a question

export function TopologiesPage() {
  const [wanted, setWanted] = useState("");
  const listed = usePolled((signal) => readAll("/topologies", signal), PERIOD_S, []);
  const items = listed.data ? listed.data.items : [];
  const names = items.filter((each) => !hasEnded(each.state)).slice(0, CHARTS);
  const key = names.map((each) => `${each.cluster}/${each.name}`).join(" ");
  const lines = usePolled((signal) => readLines(names, signal), HISTORY_S, [key]);
  const shown = items.filter((each) => `${each.cluster}/${each.name}`.includes(wanted));
  return html`
    <h1>Topologies</h1>
    <${Freshness} polled=${listed} wanted="the tracker" />
    ${(listed.data ? listed.data.away : []).map(
      (each) => html`<p class="notice bad" role="status" key=${each.name}>
        Cluster ${each.name} does not answer${each.age_s === null ? "" : ` for ${format.duration(each.age_s)}`}: ${each.error}
      </p>`,
    )}
    ${items.length > 10 &&
    html`<label class="choice">Find <input type="search" value=${wanted} onInput=${(event) => setWanted(event.currentTarget.value)} /></label>`}
    ${listed.data && !items.length && html`<p>No topology runs. Start one: <code>heron run FILE</code></p>`}
    ${shown.length > 0 &&
    html`<${Scrolled} label="Topologies">
      <table class="topologies">
        <thead>
          <tr>
            <th scope="col">topology</th>
            <th scope="col" class="wide">cluster</th>
            <th scope="col">state</th>
            <th scope="col">trouble</th>
            <th scope="col" class="number">spouts emit</th>
            <th scope="col" class="wide">15 minutes</th>
            <th scope="col" class="wide">since</th>
            <th scope="col" class="number wide">tasks</th>
          </tr>
        </thead>
        <tbody>
          ${shown.map(
            (each) => html`<${Row}
              key=${`${each.cluster}/${each.id}`}
              item=${each}
              at=${listed.at}
              line=${(lines.data && lines.data[`${each.cluster}/${each.name}`]) || []}
            />`,
          )}
        </tbody>
      </table>
    <//>`}
  `;
}

function Row({ item, at, line }) {
  const since = useSeconds(at);
  const ended = hasEnded(item.state);
  const old = !ended && isOld(item.age_s, since);
  return html`<tr class=${old ? "old" : ""}>
    <th scope="row"><a href=${viewPath(item.cluster, item.name)}>${item.name}</a></th>
    <td class="wide">${item.cluster}</td>
    <td><${State} state=${item.state} old=${old} trouble=${item.trouble.length > 0} /></td>
    <td class="words">${item.trouble.length ? html`<${Trouble} cluster=${item.cluster} topology=${item.name} trouble=${item.trouble[0]} />` : html`<span class="none">none</span>`}
      ${item.trouble.length > 1 && html` <a href=${viewPath(item.cluster, item.name)}>and ${item.trouble.length - 1} more</a>`}
    </td>
    <td class="number">
      ${ended ? "–" : format.rate(item.rate_per_s)}
      ${old && html`<br /><small>${format.duration(item.age_s + since)} old</small>`}
    </td>
    <td class="wide"><${Sparkline} values=${line} label=${`tuples per second of ${item.name} in the last 15 minutes`} /></td>
    <td class="wide" title=${format.moment(item.since_s)}>${item.since_s === null ? "–" : format.duration(Date.now() / 1000 - item.since_s)}</td>
    <td class="number wide">${format.count(item.tasks)}</td>
  </tr>`;
}

// The tuples per second that the spouts of each topology emit, by cluster/name.
async function readLines(items, signal) {
  const found = {};
  for (const each of items) {
    const place = placeOf(each.cluster, each.name);
    try {
      const history = await read(`${place}/history?metric=emit-count&step=30`, signal);
      found[`${each.cluster}/${each.name}`] = summed(history.series.filter((series) => each.spouts.includes(series.component)));
    } catch (error) {
      if (error.name === "AbortError") throw error; // one without history hides no other
    }
  }
  return found;
}

function summed(series) {
  const byTime = new Map();
  for (const each of series) for (const point of each.points) byTime.set(point.at_s, (byTime.get(point.at_s) || 0) + point.value);
  return [...byTime.entries()].sort(([one], [other]) => one - other).map(([, value]) => value);
}

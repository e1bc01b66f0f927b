// The newest metrics of a task or process; those that the history has lead to their timelines.

import { html } from "./html.js";
import { historyName } from "./engine_metrics.js";
import * as format from "./formats.js";
import { Freshness, Scrolled, viewPath, withQuery } from "./pieces.js";
import { OF_AUTHORS } from "./timelines_view.js";
import { PERIOD_S, placeOf, readAll, usePolled } from "./tracker_api.js";

// `of` are the parameters of one task or process for the API, and `shown` those for the timelines; null without a history.
export function MetricsTable({ cluster, topology, label, of, shown }) {
  const path = withQuery(`${placeOf(cluster, topology)}/metrics`, of);
  const metrics = usePolled((signal) => readAll(path, signal), 2 * PERIOD_S, [path]);
  if (!metrics.data) return html`<${Freshness} polled=${metrics} wanted="the metrics" />`;
  if (!metrics.data.items.length) return html`<p>There are none.</p>`;
  const kept = (row) => shown && (row.name.startsWith(OF_AUTHORS) ? row.name : historyName(row.name, row.labels, of.process));
  const labels = (row) => Object.entries(row.labels).map(([name, value]) => `${name} ${value}`).join(", ");
  const timelines = viewPath(cluster, topology, "timelines");
  return html`<${Scrolled} label=${label}>
    <table>
      <thead><tr><th scope="col">name</th><th scope="col">of</th><th scope="col" class="number">value</th><th scope="col">unit</th><th scope="col" class="number">per second</th><th scope="col" class="number">p50</th><th scope="col" class="number">p99</th></tr></thead>
      <tbody>
        ${metrics.data.items.map(
          (row) => html`<tr key=${`${row.name} ${labels(row)}`}>
            <th scope="row">${kept(row) ? html`<a href=${withQuery(timelines, { ...shown, metric: kept(row) })}>${row.name}</a>` : row.name}</th><td>${labels(row)}</td>
            <td class="number">${exact(row.value)}</td><td>${row.kind === "histogram" ? "samples" : row.unit}</td>
            <td class="number">${exact(row.rate_per_s)}</td><td class="number">${withUnit(row.p50, row.unit)}</td><td class="number">${withUnit(row.p99, row.unit)}</td>
          </tr>`,
        )}
      </tbody>
    </table>
  <//>`;
}

// A quantile of a histogram: its unit is that of the samples, and not of their number.
function withUnit(value, unit) {
  if (unit === "s") return format.latency(value);
  return unit === "bytes" ? format.bytes(value) : exact(value);
}

function exact(value) {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value) || Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en");
  return value.toPrecision(4);
}

// Where the time of tuples goes: the shares of all traces, and the slowest of them as a waterfall.

import { html } from "./html.js";
import * as format from "./formats.js";
import { Freshness, Scrolled, viewPath, withQuery } from "./pieces.js";
import { placeOf, read, usePolled } from "./tracker_api.js";

const PERIOD_S = 5; // a trace is complete some seconds after its root
const MOST_STEPS = 200;
const WIDTH = 1000; // of a bar, in units of its own

const LINKED = 100; // traces that are asked for to find that of an address

// The chosen trace is part of the URL.
export function TracesView({ cluster, topology, query, go, ended }) {
  const place = placeOf(cluster, topology);
  const chosen = query.get("trace") || "";
  const path = withQuery(`${place}/traces`, { limit: chosen && LINKED });
  const traces = usePolled((signal) => read(path, signal), PERIOD_S, [path]);
  const choose = (trace) => go(withQuery(viewPath(cluster, topology, "traces"), { trace }), { replace: true });
  if (!traces.data) return html`<${Freshness} polled=${traces} ended=${ended} wanted="the traces" />`;
  const { summary, slowest, refused } = traces.data;
  if (!slowest.length)
    return html`<h2>Traces</h2>
      <p>No tuple has been traced yet. If nothing is traced, this begins with one of 10,000 roots:</p>
      <pre tabindex="0" aria-label="Command">heron update ${topology} --runtime-config topology.trace.one.in=10000</pre>`;
  const shown = slowest.find((each) => each.trace_id === chosen) || slowest[0];
  return html`
    <h2>Where the time goes</h2>
    <p>
      ${format.plural(summary.traces, "trace")}: half of them took at most ${format.latency(summary.p50_s)}, 99 % at most ${format.latency(summary.p99_s)}.
      ${summary.incomplete > 0 && ` ${format.plural(summary.incomplete, "trace")} without all spans ${summary.incomplete === 1 ? "is" : "are"} left out.`}
      ${refused > 0 && ` ${format.count(refused)} more came too fast to be kept.`}
    </p>
    <${Shares} hops=${summary.hops} />
    <h2>The slowest traces</h2>
    <p>
      <label>Trace <select value=${shown.trace_id} onChange=${(event) => choose(event.target.value)}>
        ${slowest.map((each) => html`<option key=${each.trace_id} value=${each.trace_id}>${format.latency(each.duration_s)}, ${format.moment(each.at_s)}</option>`)}
      </select></label>
    </p>
    ${chosen && shown.trace_id !== chosen && html`<p class="notice" role="status">Trace ${chosen} is not among the slowest any more.</p>`}
    <${Waterfall} trace=${shown} cluster=${cluster} topology=${topology} />
  `;
}

function edge(hop) {
  return hop.source && !["execute", "queue"].includes(hop.kind) ? `${hop.source} → ${hop.component}` : hop.component;
}

function Shares({ hops }) {
  return html`<${Scrolled} label="Hops of all traces">
    <table>
      <thead><tr><th scope="col">hop</th><th scope="col">where</th><th scope="col" class="number">share</th><th scope="col" class="number">p50</th><th scope="col" class="number">p90</th><th scope="col" class="number">p99</th></tr></thead>
      <tbody>
        ${hops.map(
          (each) => html`<tr key=${`${each.kind} ${each.source} ${each.component}`}>
            <th scope="row">${each.kind}</th><td>${edge(each)}</td><td class="number">${format.percent(each.share)}</td>
            <td class="number">${format.latency(each.p50_s)}</td><td class="number">${format.latency(each.p90_s)}</td><td class="number">${format.latency(each.p99_s)}</td>
          </tr>`,
        )}
      </tbody>
    </table>
  <//>`;
}

function Waterfall({ trace, cluster, topology }) {
  const steps = trace.steps.slice(0, MOST_STEPS);
  return html`
    <p>
      ${trace.component && html`A tuple of ${trace.component}/${trace.task_id}, `}${format.latency(trace.duration_s)}${trace.outcome && `, ${trace.outcome}`}.
      ${trace.missing > 0 && ` At least ${format.plural(trace.missing, "span")} did not arrive.`}
      ${trace.cut && " Not all tuples that it led to were followed."}
    </p>
    <${Scrolled} label="Hops of this trace">
      <table class="waterfall">
        <thead><tr><th scope="col">task</th><th scope="col">hop</th><th scope="col">when</th><th scope="col" class="number">begins</th><th scope="col" class="number">takes</th><th scope="col" class="number">on the critical path</th></tr></thead>
        <tbody>${steps.map((each, at) => html`<${Step} key=${at} step=${each} whole=${trace.duration_s} cluster=${cluster} topology=${topology} />`)}</tbody>
      </table>
    <//>
    ${trace.steps.length > MOST_STEPS && html`<p>${format.count(trace.steps.length - MOST_STEPS)} more hops are not shown.</p>`}
  `;
}

function Step({ step, whole, cluster, topology }) {
  const start = whole > 0 ? (WIDTH * step.start_s) / whole : 0;
  const length = whole > 0 ? (WIDTH * step.duration_s) / whole : 0;
  return html`<tr class=${step.critical_s > 0 ? "critical" : ""}>
    <td class=${`depth-${Math.min(step.depth, 6)}`}><a href=${viewPath(cluster, topology, "task", step.task_id)}>${step.component}/${step.task_id}</a></td>
    <th scope="row">${step.kind}</th>
    <td class="bar">
      <svg viewBox=${`0 0 ${WIDTH} 10`} preserveAspectRatio="none" aria-hidden="true">
        <rect x=${Math.min(start, WIDTH - 3)} y="0" width=${Math.max(3, Math.min(length, WIDTH - start))} height="10" />
      </svg>
    </td>
    <td class="number">${format.latency(step.start_s)}</td>
    <td class="number">${step.is_estimate ? "about " : ""}${format.latency(step.duration_s)}</td>
    <td class="number">${step.critical_s > 0 ? format.latency(step.critical_s) : "–"}</td>
  </tr>`;
}

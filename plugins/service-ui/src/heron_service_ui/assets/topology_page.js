// The frame of a topology: its state, what is wrong, and the tabs of its views. One live stream serves them all.

import { html } from "./html.js";
import * as format from "./formats.js";
import { ActionsView } from "./actions_view.js";
import { CheckpointsView } from "./checkpoints_view.js";
import { ContainersView } from "./containers_view.js";
import { Explanation } from "./explanation_view.js";
import { FlowView } from "./flow_view.js";
import { HealthView } from "./health_view.js";
import { ProcessView } from "./logs_view.js";
import { PlansView } from "./plans_view.js";
import { ProblemsView } from "./problems_view.js";
import { TaskView } from "./task_view.js";
import { TasksView } from "./tasks_view.js";
import { TimelinesView } from "./timelines_view.js";
import { TracesView } from "./traces_view.js";
import { Freshness, State, Troubles, hasEnded, useOld, viewPath } from "./pieces.js";
import { ACTIONS_ALLOWED, EXPLAINS, useLive } from "./tracker_api.js";

const VIEWS = {
  graph: ["Graph", FlowView],
  tasks: ["Tasks", TasksView],
  timelines: ["Timelines", TimelinesView],
  traces: ["Traces", TracesView],
  checkpoints: ["Checkpoints", CheckpointsView],
  containers: ["Containers", ContainersView],
  plans: ["Plans", PlansView],
  problems: ["Problems", ProblemsView],
  health: ["Health", HealthView],
  ...(ACTIONS_ALLOWED ? { actions: ["Actions", ActionsView] } : {}),
};

const NO_ACTIONS = "This server changes no topologies; start it with --allow-actions and --token-file FILE.";

export function TopologyPage({ cluster, topology, view, rest, query, go }) {
  const live = useLive(cluster, topology);
  const old = useOld(live);
  const item = live.data && live.data.topology;
  const status = live.data && live.data.status;
  const ended = Boolean(item && hasEnded(item.state));
  const shared = { cluster, topology, query, go, live, ended, status, old: old && !ended };
  const [, Shown] = VIEWS[view] || [];
  const unknown = !live.data && live.problem && live.problem.status === 404; // the history may know it nevertheless
  return html`
    <div class="title">
      <h1>${topology}</h1>
      ${item && html`<${State} state=${item.state} old=${shared.old} trouble=${item.trouble.length > 0} />`}
    </div>
    <${Freshness} polled=${live} ended=${ended} wanted=${`topology ${topology} of cluster ${cluster}`} />
    ${item &&
    html`<div class=${shared.old ? "summary old" : "summary"}>
      <dl class="facts">
        <div><dt>spouts emit</dt><dd>${ended ? "–" : format.rate(item.rate_per_s)}</dd></div>
        <div><dt>tasks</dt><dd>${format.count(item.tasks)}</dd></div>
        <div><dt>containers</dt><dd>${format.count(item.containers)}</dd></div>
        <div><dt>since</dt><dd>${format.moment(item.since_s)}</dd></div>
        <div><dt>user</dt><dd>${item.user}</dd></div>
        <div><dt>run</dt><dd>${item.id}</dd></div>
        ${item.links.map((each) => html`<div key=${each.title}><dt>${each.title}</dt><dd><a href=${each.url} rel="noreferrer">${format.cut(each.url, 60)}</a></dd></div>`)}
      </dl>
      ${item.trouble.length ? html`<${Troubles} cluster=${cluster} topology=${topology} troubles=${item.trouble} />` : html`<p class="well">Nothing is known to be wrong.</p>`}
      ${item.health && html`<p class="notice">${sentence(item.health)} <a href=${viewPath(cluster, topology, "health")}>All decisions</a></p>`}
      ${EXPLAINS && html`<${Explanation} cluster=${cluster} topology=${topology} components=${status ? status.components.map((each) => each.name) : []} />`}
    </div>`}
    ${(!unknown || view === "timelines") && html`<nav class="tabs" aria-label="Views of the topology">
      ${Object.entries(VIEWS).map(
        ([key, [title]]) => html`<a
          key=${key}
          href=${viewPath(cluster, topology, key)}
          aria-current=${key === view ? "page" : undefined}
        >${title}</a>`,
      )}
    </nav>
    <div class=${shared.old ? "view old" : "view"}>
      ${view === "task"
        ? html`<${TaskView} key=${rest[0]} ...${shared} task=${rest[0] || ""} part=${rest[1] || ""} />`
        : view === "process"
          ? html`<${ProcessView} key=${rest[0]} ...${shared} process=${rest[0] || ""} />`
          : Shown
          ? html`<${Shown} ...${shared} />`
          : html`<p>${view === "actions" ? NO_ACTIONS : `There is no view ${view}.`}</p>`}
    </div>`}
  `;
}

function sentence(text) {
  return `${text[0].toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;
}

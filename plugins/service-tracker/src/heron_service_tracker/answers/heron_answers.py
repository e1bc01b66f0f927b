"""The answers of Heron Tracker, for scripts that were written for it. Pure: values in, JSON values out.

Source: Apache Heron 0.20.5, ``heron/tools/tracker``. Metrics are texts and times whole seconds, as there.
Instances are called ``container_CONTAINER_COMPONENT_TASK``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from heron_cli.client import MetricsRow, TaskMemory, TaskStacks, TopologyPlans
from heron_service_tracker.answers.answer_parts import exception_items, shown_config
from heron_service_tracker.answers.answers import ExceptionItem
from heron_service_tracker.observed.observed import ObservedTopology

__all__ = [
    "exception_list",
    "exception_summary",
    "execution_state",
    "histogram_text",
    "instance_names",
    "latest_metrics",
    "logical_plan",
    "metadata",
    "packing_plan",
    "physical_plan",
    "runtime_state",
    "scheduler_location",
    "stack_text",
    "tmanager_location",
    "topology_info",
]

Document = dict[str, object]

_STATUS = {"running": "Running", "paused": "Paused", "killed": "Killed"}
_METRIC = re.compile(r"__(?P<name>[\w-]+)(?:/(?:(?P<component>[^/]+)/)?(?P<stream>[^/]+))?")


def metadata(topology: ObservedTopology) -> Document:
    """Who submitted the topology, and when."""
    entry = topology.entry
    return {
        "cluster": topology.cluster,
        "environ": entry.env,
        "role": entry.role,
        "jobname": entry.name,
        "submission_time": int(entry.since_s or 0),
        "submission_user": entry.user,
        "release_username": "",
        "release_tag": "",
        "release_version": entry.version,
        "instances": entry.tasks,
        "extra_links": [],
    }


def execution_state(topology: ObservedTopology) -> Document:
    """The metadata, and which plans and locations there are."""
    plans, status = topology.plans, topology.status
    return {
        **metadata(topology),
        "has_packing_plan": plans is not None,
        "has_physical_plan": plans is not None and plans.physical is not None,
        "has_tmanager_location": status is not None and status.leader is not None,
        "has_scheduler_location": bool(topology.entry.profile),
        "status": _STATUS.get(topology.entry.state, topology.entry.state.capitalize()),
    }


def scheduler_location(topology: ObservedTopology) -> Document:
    """Heron's name for a scheduler that is a library of the command; there is no service to ask."""
    return {"name": topology.name, "http_endpoint": "scheduler_as_lib_no_endpoint", "job_page_link": ""}


def tmanager_location(topology: ObservedTopology) -> Document:
    """The host of the topology manager; its ports speak another protocol than Heron's and are not told."""
    leader = topology.status.leader if topology.status else None
    return {
        "name": topology.name,
        "id": topology.entry.id,
        "host": leader.host if leader else None,
        "controller_port": None,
        "server_port": None,
        "stats_port": None,
    }


def logical_plan(plans: TopologyPlans) -> Document:
    """Spouts, bolts, and the number of stages: components on the longest path from a spout."""
    spouts: Document = {}
    bolts: Document = {}
    for each in plans.definition.components:
        outputs = [{"stream_name": stream.name} for stream in each.outputs]
        config = shown_config(each.config)
        if each.kind.value == "spout":
            spouts[each.name] = {
                "config": config,
                "spout_type": config.get("spout.type", "default"),
                "spout_source": config.get("spout.source", "NA"),
                "version": config.get("spout.version", "NA"),
                "outputs": outputs,
                "extra_links": [],
            }
            continue
        inputs = [
            {"stream_name": source.stream, "component_name": source.component, "grouping": source.grouping.kind.name}
            for source in each.inputs
        ]
        bolts[each.name] = {
            "config": config,
            "outputs": outputs,
            "inputs": inputs,
            "inputComponents": list(dict.fromkeys(source.component for source in each.inputs)),
        }
    return {"spouts": spouts, "bolts": bolts, "stages": _stages(plans)}


def packing_plan(plans: TopologyPlans) -> Document:
    """The containers with their instances; resources are cores and bytes."""
    containers = [
        {
            "id": container.container_id,
            "instances": [
                {
                    "component_name": each.component,
                    "task_id": each.task_id,
                    "component_index": each.component_index,
                    "instance_resources": _resources(*each.resource.amounts()),
                }
                for each in container.instances
            ],
            "required_resources": _resources(*container.required.amounts()),
            "scheduled_resources": {},
        }
        for container in plans.packing.containers
    ]
    return {"id": plans.packing.id, "container_plans": containers}


def physical_plan(topology: ObservedTopology, plans: TopologyPlans) -> Document:
    """The instances by container, stream manager and component."""
    tasks = plans.physical.tasks if plans.physical else ()
    names = instance_names(plans)
    groups: dict[str, list[str]] = {}
    by_component: dict[str, list[str]] = {}
    for each in tasks:
        groups.setdefault(f"container_{each.container_id}", []).append(names[each.task_id])
        by_component.setdefault(each.component, []).append(names[each.task_id])
    instances = {
        names[each.task_id]: {
            "id": names[each.task_id],
            "name": each.component,
            "stmgr_id": f"stmgr-{each.container_id}",
            "logfile": "",
        }
        for each in tasks
    }
    stmgrs = {
        f"stmgr-{each.container_id}": {
            "id": f"stmgr-{each.container_id}",
            "host": each.host,
            "port": int(each.endpoint.rpartition(":")[2]) if each.endpoint.rpartition(":")[2].isdigit() else None,
            "shell_port": None,
            "cwd": "",
            "pid": each.pid,
            "joburl": "",
            "logfiles": topology.entry.logs,
            "instance_ids": groups.get(f"container_{each.container_id}", []),
        }
        for each in (plans.physical.stmgrs if plans.physical else ())
    }
    kinds = {each.name: each.kind.value for each in plans.definition.components}
    return {
        "instances": instances,
        "instance_groups": groups,
        "stmgrs": stmgrs,
        "spouts": {name: found for name, found in by_component.items() if kinds.get(name) == "spout"},
        "bolts": {name: found for name, found in by_component.items() if kinds.get(name) == "bolt"},
        "config": shown_config(plans.definition.config),
        "components": {each.name: {"config": shown_config(each.config)} for each in plans.definition.components},
    }


def runtime_state(topology: ObservedTopology) -> Document:
    """The version of the topology, and which stream managers run."""
    processes = topology.status.processes if topology.status else ()
    stmgrs = {
        f"stmgr-{each.container_id}": {"is_registered": each.state == "running"}
        for each in processes
        if each.process == "stmgr"
    }
    return {"topology_version": topology.entry.id, "stmgrs": stmgrs}


def topology_info(topology: ObservedTopology) -> Document:
    """Everything above in one document; plans that are not known are empty."""
    plans = topology.plans
    return {
        "name": topology.name,
        "id": topology.entry.id,
        "logical_plan": logical_plan(plans) if plans else {"spouts": {}, "bolts": {}, "stages": 0},
        "packing_plan": packing_plan(plans) if plans else {"id": "", "container_plans": []},
        "physical_plan": physical_plan(topology, plans) if plans else _NO_PHYSICAL_PLAN,
        "execution_state": execution_state(topology),
        "metadata": metadata(topology),
        "runtime_state": runtime_state(topology),
        "scheduler_location": scheduler_location(topology),
        "tmanager_location": tmanager_location(topology),
    }


def instance_names(plans: TopologyPlans) -> dict[int, str]:
    """Heron's name of each task."""
    tasks = plans.physical.tasks if plans.physical else ()
    return {each.task_id: f"container_{each.container_id}_{each.component}_{each.task_id}" for each in tasks}


def latest_metrics(
    rows: Iterable[MetricsRow],
    names: Mapping[int, str],
    component: str,
    wanted: Sequence[str],
    instances: Sequence[str],
) -> Document:
    """The totals of a component's tasks by metric and instance.

    A wanted ``__emit-count/default`` is the metric ``emit-count`` of that stream, and ``__execute-count/lines/default``
    counts the tuples of a component's stream. The answer has the name that was asked for.
    """
    asked: dict[str, list[tuple[str, Mapping[str, str]]]] = {}
    for name in wanted:
        match = _METRIC.fullmatch(name)
        parts = {key: each for key, each in match.groupdict().items() if each and key != "name"} if match else {}
        asked.setdefault(match["name"] if match else name, []).append((name, parts))
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        instance = names.get(row.task_id)
        if row.component != component or instance is None or (instances and instance not in instances):
            continue
        chosen = [name for name, parts in asked.get(row.name, []) if _has(row, parts)]
        for name in chosen if wanted else [_labelled(row)]:
            before = float(found.get(name, {}).get(instance, 0))
            found.setdefault(name, {})[instance] = f"{before + row.value:.15g}"
    return {"component": component, "interval": -1, "metrics": found}


def _has(row: MetricsRow, labels: Mapping[str, str]) -> bool:
    """Whether a row has these labels, as far as its metric has them."""
    return all(row.labels.get(key, value) == value for key, value in labels.items())


def exception_list(topology: ObservedTopology, component: str, instances: Sequence[str]) -> list[Document]:
    """The errors of a component, newest first."""
    plans = topology.plans
    names = instance_names(plans) if plans else {}
    hosts = {each.task_id: each.host for each in topology.status.processes} if topology.status else {}
    return [
        {
            "hostname": hosts.get(each.task_id, ""),
            "instance_id": names.get(each.task_id, ""),
            "stack_trace": each.text,
            "last_time": str(int(each.newest_at_s or each.first_at_s or 0)),
            "first_time": str(int(each.first_at_s or 0)),
            "count": str(each.count or 1),
        }
        for each in exception_items(topology, component)
        if not instances or names.get(each.task_id, "") in instances
    ]


def exception_summary(topology: ObservedTopology, component: str, instances: Sequence[str]) -> list[Document]:
    """The errors of a component by the class of the exception."""
    names = instance_names(topology.plans) if topology.plans else {}
    grouped: dict[str, list[ExceptionItem]] = {}
    for each in exception_items(topology, component):
        if not instances or names.get(each.task_id, "") in instances:
            grouped.setdefault(each.exception, []).append(each)
    return [
        {
            "class_name": name,
            "last_time": str(max(int(each.newest_at_s or each.first_at_s or 0) for each in items)),
            "first_time": str(min(int(each.first_at_s or 0) for each in items)),
            "count": str(sum(each.count or 1 for each in items)),
        }
        for name, items in grouped.items()
    ]


def stack_text(stacks: TaskStacks) -> str:
    """The threads of a task, each with its innermost call first, as ``jstack`` prints them."""
    threads = []
    for each in stacks.threads:
        why = f", for {each.waits_for}" if each.waits_for else ""
        head = f'"{each.name}" ({each.role}) {each.state}{why}'
        calls = [f"    at {frame.function} ({frame.file}, line {frame.line})" for frame in reversed(each.frames)]
        threads.append("\n".join([head, *calls]))
    return "\n\n".join(threads)


def histogram_text(memory: TaskMemory) -> str:
    """The objects of a task by type, the largest first, as ``jmap -histo`` prints them."""
    rows = sorted(memory.types, key=lambda each: -each.own_bytes)
    head = [" num     #instances         #bytes  class name", "-" * 46]
    lines = [
        f"{number:4}: {each.objects:14} {each.own_bytes:14}  {each.name}" for number, each in enumerate(rows, start=1)
    ]
    total = f"Total {sum(each.objects for each in rows):14} {sum(each.own_bytes for each in rows):14}"
    return "\n".join([*head, *lines, total])


_NO_PHYSICAL_PLAN: Document = {
    "instances": {},
    "instance_groups": {},
    "stmgrs": {},
    "spouts": {},
    "bolts": {},
    "config": {},
    "components": {},
}


def _resources(cpu: float, ram_bytes: int, disk_bytes: int) -> Document:
    return {"cpu": cpu, "ram": ram_bytes, "disk": disk_bytes}


def _labelled(row: MetricsRow) -> str:
    return "/".join([row.name, *(value for _, value in sorted(row.labels.items()))])


def _stages(plans: TopologyPlans) -> int:
    """The components on the longest path; every component of a verified topology comes after its sources."""
    sources = {each.name: {source.component for source in each.inputs} for each in plans.definition.components}
    depth = {name: 1 for name, found in sources.items() if not found}
    while len(depth) < len(sources):
        ready = [name for name, found in sources.items() if name not in depth and found <= depth.keys()]
        if not ready:
            break  # a cycle, which verification refuses
        depth |= {name: 1 + max(depth[source] for source in sources[name]) for name in ready}
    return max(depth.values(), default=0)

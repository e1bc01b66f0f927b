"""config.json, the arguments of a program, and the precedence of options."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from heron.api.capture import TopologySource
from heron.errors import ConfigError, HeronError, TopologyError, UsageError
from heron_compat_streamparse.project.arguments import parse_arguments
from heron_compat_streamparse.project.project import Environment, find_project
from heron_compat_streamparse.project.storm_options import resolve, split_component

LoadProject = Callable[..., TopologySource]

MODE = "topology.reliability.mode"


def heron_options(
    arguments: Mapping[str, object] | None = None,
    own: Mapping[str, object] | None = None,
    **settings: object,
) -> dict[str, object]:
    """Return what Heron gets."""
    return resolve(arguments or {}, own or {}, Environment("prod", settings), "topology 'words'").heron


def test_arguments_go_before_the_class_and_the_class_before_the_environment() -> None:
    """The precedence of streamparse."""
    environment = {"options": {"a": "environment", "b": "environment", "c": "environment"}}
    found = heron_options({"a": "argument"}, {"a": "class", "b": "class"}, **environment)
    assert {key: found[key] for key in "abc"} == {"a": "argument", "b": "class", "c": "environment"}


@pytest.mark.parametrize(
    ("own", "workers", "mode"),
    [
        ({}, 1, "ATLEAST_ONCE"),
        ({"topology.workers": 3}, 3, "ATLEAST_ONCE"),
        ({"topology.acker.executors": 0}, 1, "ATMOST_ONCE"),
        ({"topology.workers": "2", "topology.acker.executors": 4}, 2, "ATLEAST_ONCE"),
        ({"topology.acker.executors": 0, MODE: "ATLEAST_ONCE"}, 1, "ATLEAST_ONCE"),
        ({"topology.workers": 3, "topology.stmgrs": 2}, 2, "ATLEAST_ONCE"),
    ],
)
def test_workers_are_containers_and_ackers_are_the_guarantee(own: dict[str, object], workers: int, mode: str) -> None:
    """Heron's own keys win over those of Storm."""
    found = heron_options(own=own)
    assert (found["topology.stmgrs"], found[MODE]) == (workers, mode)


def test_keys_of_storm_are_only_shown_to_components() -> None:
    """A key that Heron does not have would be refused; `ignored` has those that the user hears of."""
    own = {"topology.kryo.register": ["x"], "topology.debug": True, "mine": 1, "topology.tasks": None}
    options = resolve({}, own, Environment("", {"worker_count": 2, "log": {"level": "WARN", "path": ""}}), "it")
    assert options.storm == {"topology.kryo.register": ["x"], "topology.workers": 2, "topology.acker.executors": 2}
    assert options.ignored == ("topology.kryo.register",)
    assert (options.heron["topology.debug"], options.heron["mine"]) == (True, 1)
    assert options.heron["pystorm.log.level"] == "debug", "topology.debug sets it"
    component = split_component({"topology.message.timeout.secs": 3, "topology.max.spout.pending": 9})
    assert (component.heron, component.ignored) == (
        {"topology.max.spout.pending": 9},
        ("topology.message.timeout.secs",),
    )


@pytest.mark.parametrize("value", [0, -1, "many", 1.5, True])
def test_a_number_of_workers_is_checked(value: object) -> None:
    """The error names the key."""
    with pytest.raises(
        ConfigError, match=r"topology 'words': topology.workers: .* is not a whole number of at least 1"
    ):
        heron_options({"topology.workers": value})


def test_the_flags_of_sparse_are_read() -> None:
    """Values of options are JSON where they can be, else text."""
    argv = ["-e", "prod", "-o", "a=1", "--option", "b=x", "-w", "2", "--ackers", "0", "-d", "-N", "other", "-o", "a=2"]
    found = parse_arguments(argv)
    assert (found.environment, found.name) == ("prod", "other")
    assert found.options == {
        "a": 2,
        "b": "x",
        "topology.workers": 2,
        "topology.acker.executors": 0,
        "topology.debug": True,
    }


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--nimbus"], "unrecognized"),
        (["-w", "x"], "-w/--workers: 'x' is not a whole number"),
        (["--ackers", "1.5"], "-a/--ackers: '1.5' is not a whole number"),
        (["-o", "a"], "KEY=VALUE"),
    ],
)
def test_an_unknown_argument_is_refused_with_those_that_are_known(argv: list[str], message: str) -> None:
    """The user sees what there is."""
    with pytest.raises(UsageError, match=rf"arguments of the topology: .*{message}.*; known: -e ENVIRONMENT"):
        parse_arguments(argv)


def write_environments(project: Path, environments: object) -> None:
    """Replace the environments of the project."""
    (project / "config.json").write_text(json.dumps({"topology_specs": "topologies/", "envs": environments}))


def test_an_environment_gives_options_and_tasks(project: Path, load: LoadProject) -> None:
    """`par` may be by environment, as in streamparse."""
    write_environments(project, {"dev": {}, "prod": {"options": {"topology.workers": 2, "mine": "x"}}})
    path = project / "topologies" / "wordcount.py"
    path.write_text(path.read_text().replace("par=2", "par={'dev': 1, 'prod': 5}"))
    definition = load(path, "--environment", "prod").definition()
    assert definition.component("count_bolt").parallelism == 5
    assert (definition.name, definition.config["topology.stmgrs"], definition.config["mine"]) == ("wordcount", 2, "x")


@pytest.mark.parametrize(
    ("environments", "argv", "message"),
    [
        (
            {"dev": {}, "prod": {}},
            (),
            r"config.json: there are 2 environments, 'dev', 'prod'; choose one: .*-- --environment dev",
        ),
        ({"prod": {}}, ("-e", "prd"), r"config.json: no environment 'prd' \(nearest: 'prod'\); known: 'prod'"),
        ({"prod": {"options": 3}}, (), r"config.json: envs.prod.options: 3 is not an object"),
        (
            {"prod": {}},
            (),
            r"component 'count_bolt': par has no number of tasks for the environment 'prod'; it has 'dev'",
        ),
    ],
)
def test_a_wrong_environment_is_refused(
    project: Path, load: LoadProject, environments: object, argv: tuple[str, ...], message: str
) -> None:
    """Each message says what to give instead."""
    write_environments(project, environments)
    path = project / "topologies" / "wordcount.py"
    path.write_text(path.read_text().replace("par=2", "par={'dev': 1}"))
    with pytest.raises(HeronError, match=message):
        load(path, *argv).definition()


def test_effectively_once_is_refused(project: Path, load: LoadProject) -> None:
    """No component of streamparse has a state that a checkpoint could keep."""
    source = load(project / "topologies" / "wordcount.py", "-o", f"{MODE}=EFFECTIVELY_ONCE")
    with pytest.raises(ConfigError, match=r"topology 'WordCount': .* is EFFECTIVELY_ONCE, .*; set ATLEAST_ONCE"):
        source.definition()


def test_a_file_without_a_project_has_no_environment(tmp_path: Path, load: LoadProject) -> None:
    """Then `par` by environment has no meaning either."""
    path = tmp_path / "alone.py"
    path.write_text(
        "from streamparse import Spout, Topology\nclass A(Spout):\n    outputs = ['a']\n    par = {'prod': 1}\n"
        "class T(Topology):\n    a = A.spec()\n"
    )
    assert find_project(path) is None
    with pytest.raises(TopologyError, match=r"no number of tasks for a topology without config\.json"):
        load(path).definition()
    with pytest.raises(ConfigError, match=r"there is no config.json above it, so no environment 'prod'"):
        load(path, "-e", "prod").definition()


def test_a_class_of_another_file_runs_under_the_name_of_the_file(project: Path, load: LoadProject) -> None:
    """The arguments belong to the file that is run."""
    path = project / "topologies" / "other.py"
    path.write_text("from wordcount import WordCount\nWordCount.specs[0].par = 3\n")
    definition = load(path, "-w", "4", name="WordCount").definition()
    assert (definition.name, definition.config["topology.stmgrs"]) == ("other", 4)
    assert definition.component("word_spout").parallelism == 3

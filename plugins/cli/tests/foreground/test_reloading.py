"""``heron run --reload``: what counts as a saved file, and what is said about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.errors import HeronError, RefusedError, TopologyError, TopologyFailedError
from heron_cli.foreground import reloading
from heron_cli.foreground.reloading import Reloaded, Reloading
from heron_cli.launch.code.code_update import CodeUpdate
from heron_cli.launch.loading.loaded import LoadedTopology
from heron_cli.topologies.environment import Environment, ProfileChoice
from heron_cli.topologies.running.code_request import CodeRequest
from heron_testing.builders import spout, topology
from heron_testing.waiting import Eventually


class Updates:
    """What the program gives to the topology: each request ends with the next outcome."""

    def __init__(self, *outcomes: CodeUpdate | HeronError) -> None:
        self.outcomes = list(outcomes)
        self.requests: list[CodeRequest] = []

    def __call__(
        self, _environment: object, _choice: object, _topology: object, request: CodeRequest, _load: object
    ) -> CodeUpdate:
        self.requests.append(request)
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, HeronError):
            raise outcome
        return outcome

    def wait_for(self, count: int, eventually: Eventually) -> None:
        """Wait for this number of requests."""
        eventually(lambda: len(self.requests) == count)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "wc.py"
    path.write_text("one")
    return path


def followed(
    program: Path, environment: Environment, monkeypatch: pytest.MonkeyPatch, *outcomes: CodeUpdate | HeronError
) -> tuple[Reloading, Updates]:
    """A program whose files are followed."""
    updates = Updates(*outcomes)
    monkeypatch.setattr(reloading, "update_code", updates)
    monkeypatch.setattr(reloading, "find_profile", lambda _choice: environment.profile)
    monkeypatch.setattr(reloading, "open_environment", lambda _profile: environment)
    loaded = LoadedTopology(topology(spout("word"), name="wc"), "wc", False, None, ("-x",), program.parent, ("wc.py",))
    return Reloading(ProfileChoice(), "wc", f"{program}:Words", loaded), updates


def said(reloads: Reloading, count: int, eventually: Eventually) -> list[Reloaded]:
    """What is said, as soon as there is so much of it."""
    found: list[Reloaded] = []

    def look() -> bool:
        found.extend(reloads.said())
        return len(found) == count

    eventually(look)
    return found


def test_a_saved_file_is_given_to_the_topology_with_its_arguments(
    program: Path, environment: Environment, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    """A second file belongs to the new program, and counts from then on."""
    other = program.with_name("other.py")
    other.write_text("other")
    done = CodeUpdate("wc", ("word",), (1,), took_s=0.5, files=(program, other))
    same = CodeUpdate("wc", (), (), took_s=0.0, files=(program, other))
    followed_program, updates = followed(program, environment, monkeypatch, done, same, done)
    with followed_program as reloads:
        for number, path in enumerate((program, program, other), 1):
            path.write_text(f"version {number}")
            updates.wait_for(number, eventually)
        found = said(reloads, 2, eventually)
    assert found == [Reloaded("heron: reloaded word in 0.50 s")] * 2, "other comments change nothing"
    assert {(each.target, each.arguments) for each in updates.requests} == {(f"{program}:Words", ("-x",))}


def test_code_that_does_not_work_is_said_once(
    program: Path, environment: Environment, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    """The error of a task is in the status too, so its reason is apart."""
    failures = TopologyError("wc.py:3: SyntaxError"), TopologyFailedError("task 4 raised")
    followed_program, updates = followed(program, environment, monkeypatch, *failures)
    with followed_program as reloads:
        program.write_text("two")
        updates.wait_for(1, eventually)
        program.write_text("three")
        updates.wait_for(2, eventually)
        found = said(reloads, 2, eventually)
    assert found == [
        Reloaded("heron: not reloaded, the former code runs on: wc.py:3: SyntaxError"),
        Reloaded("heron: not reloaded, the former code runs on", "task 4 raised"),
    ]


def test_a_file_that_the_program_imports_for_the_first_time_can_be_mended(
    program: Path, environment: Environment, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    """The files of a program are known when it has loaded, and the error may be in the new one."""
    done = CodeUpdate("wc", ("word",), (1,), took_s=0.5, files=(program,))
    followed_program, updates = followed(program, environment, monkeypatch, TopologyError("parts.py:1: no"), done)
    other = program.with_name("parts.py")
    with followed_program as reloads:
        other.write_text("wrong")
        program.write_text("import parts")
        updates.wait_for(1, eventually)
        other.write_text("right now")
        updates.wait_for(2, eventually)
        assert said(reloads, 2, eventually)[1] == Reloaded("heron: reloaded word in 0.50 s")


def test_files_that_were_refused_are_given_again_as_they_are_then(
    program: Path, environment: Environment, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    """Another update is under way: that is said once for each save, and the newest save wins."""
    monkeypatch.setattr(reloading, "_AGAIN_S", 0.01)
    refusal = RefusedError("an update is under way")
    done = CodeUpdate("wc", ("word",), (1,), took_s=0.5, files=(program,))
    followed_program, updates = followed(program, environment, monkeypatch, refusal, refusal, done)
    with followed_program as reloads:
        program.write_text("version two")
        updates.wait_for(3, eventually)
        found = said(reloads, 2, eventually)
    assert found == [
        Reloaded("heron: not reloaded yet, the former code runs on: an update is under way"),
        Reloaded("heron: reloaded word in 0.50 s"),
    ]

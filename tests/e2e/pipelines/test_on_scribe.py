"""Scribe collectors in topologies and pipelines, with real clients: what arrives, whatever dies."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron.errors import SinkError
from heron_connector_scribe import announced
from heron_metricsink_scribe.client import Answer, Client, Entry
from heron_testing.ports import free_port
from heron_testing_servers.scribe_clients import ScribeClients

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

_KINDS = ("facebook", "java")
_LINE = re.compile(r"(\w+) (\d+) (?:b')?([\w-]+)")
_PATIENT = ("--set", "heron.executor.stable.s=0", "--set", "scheduler.stable_s=0")

Address = tuple[str, int]


def kill_one(run: HeronRun, role: str, name: str) -> None:
    """Kill a process, and wait for the one that replaces it."""
    before = {process.pid for process in run.processes(role, name)}
    run.processes(role, name)[0].kill()
    run.until(lambda: {each.pid for each in run.processes(role, name)} - before, f"another {role}{name}")


def listening(run: HeronRun, collectors: int = 2) -> list[Address]:
    """Where the collectors listen, when all do."""
    folder = run.out / "collectors"
    run.until(lambda: folder.exists() and len(announced(folder)) == collectors, "collectors that listen")
    return announced(folder)


def ports() -> tuple[str, str]:
    """Arguments: the ports stay the same when a task is restarted."""
    return "--ports", f"{free_port()},{free_port()}"


def messages(kind: str, count: int) -> list[str]:
    return [f"{kind}-{number:06d}" for number in range(count)]


def received(*paths: Path) -> Counter[str]:
    """How often each message is in files."""
    texts = [path.read_text(encoding="utf-8") for path in paths if path.exists()]
    return Counter(match[3] for text in texts for match in _LINE.finditer(text))


def committed(run: HeronRun) -> Counter[str]:
    """The messages that belong to a complete checkpoint: of the topology, or of the pipeline."""
    return received(*run.out.glob("*-committed-*"), *run.out.glob("copies/part-*.txt"))


def test_at_least_once_no_message_is_lost_whatever_dies(sandbox: Sandbox, scribe_clients: ScribeClients) -> None:
    """Clients go on with another collector, or the same one when it is back; what was not answered comes again."""
    run = sandbox.start("scribe_lines.py", *_PATIENT, args=ports())
    journal = run.out / "journal"
    addresses = listening(run)
    clients = [
        scribe_clients.log(kind, places, kind, messages(kind, 6000), 20)
        for kind, places in zip(_KINDS, (addresses, addresses[::-1]), strict=True)
    ]
    run.until(lambda: len(received(journal)) > 500, "the first messages")
    for role, name in (("instance", "/lines"), ("instance", "/journal"), ("stmgr", ""), ("instance", "/lines")):
        kill_one(run, role, name)
        run.grows(lambda: len(received(journal)), f"messages after a kill of {role}{name}", 100)
    for client in clients:
        assert client.finished()["ok"] == 300
    assert set(received(journal)) == {each for kind in _KINDS for each in messages(kind, 6000)}
    partitions = {match[1] for match in re.finditer(r"facebook (\d)", journal.read_text(encoding="utf-8"))}
    assert partitions == set("0123")


@pytest.mark.parametrize("program", ["scribe_lines.py", "scribe_copies.py"])
def test_effectively_once_each_message_is_there_once_whatever_dies(
    sandbox: Sandbox, scribe_clients: ScribeClients, program: str
) -> None:
    """Each client sends a batch again, as it was, to the same collector until it is answered."""
    run = sandbox.start(program, *_PATIENT, args=("--mode", "EFFECTIVELY_ONCE", *ports()))
    addresses = listening(run)
    clients = [
        scribe_clients.log(kind, [place], kind, messages(kind, 1200), 20)
        for kind, place in zip(_KINDS, addresses, strict=True)
    ]
    run.until(lambda: len(committed(run)) > 50, "the first messages")
    reads, writes = ("lines", "journal") if program == "scribe_lines.py" else ("entries", "written")
    for role, name in (("instance", f"/{reads}"), ("instance", f"/{writes}"), ("stmgr", ""), ("instance", f"/{reads}")):
        kill_one(run, role, name)
        run.grows(lambda: len(committed(run)), f"messages after a kill of {role}{name}", 40)
    for client in clients:
        assert client.finished()["ok"] == 60
    assert committed(run) == Counter(each for kind in _KINDS for each in messages(kind, 1200))


def test_clients_find_collectors_that_come_and_move(sandbox: Sandbox, scribe_clients: ScribeClients) -> None:
    """A new task takes the next port of the list, and a task that moves keeps its port; nothing is lost meanwhile."""
    places = [("127.0.0.1", free_port()) for _ in range(3)]
    list_of_ports = ",".join(str(port) for _, port in places)
    run = sandbox.start("scribe_lines.py", args=("--ports", list_of_ports, "--interval", "0.3"))
    journal = run.out / "journal"
    assert listening(run) == places[:2]
    clients = [
        scribe_clients.log(kind, places[number:] + places[:number], kind, messages(kind, 8000), 100)
        for number, kind in enumerate(_KINDS)
    ]
    run.until(lambda: len(received(journal)) > 500, "the first messages")
    sandbox.update("scribe_lines", "lines:3")
    assert listening(run, 3) == places
    run.grows(lambda: len(received(journal)), "messages with three collectors", 200)
    sandbox.update("scribe_lines", containers=1)
    run.grows(lambda: len(received(journal)), "messages after the move", 200)
    kinds = [*_KINDS, *(f"at{number}" for number in range(3))]
    clients += [
        scribe_clients.log("facebook", [place], kind, messages(kind, 8000), 4000)
        for kind, place in zip(kinds[2:], places, strict=True)
    ]
    assert [client.finished()["ok"] for client in clients] == [80, 80, 2, 2, 2]
    assert set(received(journal)) == {each for kind in kinds for each in messages(kind, 8000)}
    assert announced(run.out / "collectors") == places


def test_a_slow_bolt_makes_clients_try_later_until_it_is_fast(sandbox: Sandbox, scribe_clients: ScribeClients) -> None:
    """The buffers of the clients carry the spike: the topology holds a bounded part of it, and loses none."""
    run = sandbox.start("scribe_lines.py", args=("--pending", "100", "--queue", "0.2", *ports()))
    journal, slow = run.out / "journal", run.out / "slow"
    addresses = listening(run)
    slow.touch()
    names = [f"c{number}" for number in range(4)]
    clients = [scribe_clients.log("facebook", addresses, name, messages(name, 400), 40) for name in names]
    asking = Client(*addresses[0])
    run.until(lambda: answer_of(asking) is Answer.TRY_LATER, "an answer TRY_LATER")
    slow.unlink()
    for client in clients:
        assert client.finished()["ok"] == 10
    assert set(received(journal)) >= {each for name in names for each in messages(name, 400)}
    counts = scribe_clients.log("facebook", addresses, "after", messages("after", 100), 10).finished()
    assert counts == {"ok": 10, "try-later": 0, "errors": 0}
    asking.close()


def answer_of(client: Client) -> Answer | None:
    """The answer to a message; None if it does not come in time."""
    try:
        return client.log([Entry("asking", "asking-1\n")])
    except SinkError:
        return None

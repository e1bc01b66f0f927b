"""The example of the real-time stack: Scribe, Kafka, two pipelines, a view, and answers over HTTP."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # its documented place

from heron.clock import wall_s
from heron_connector_scribe import announced
from heron_testing.ports import free_port
from heron_testing_servers.kafka import KafkaServer
from heron_testing_servers.scribe_clients import ScribeClients

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

_PATIENT = ("--set", "heron.executor.stable.s=0", "--set", "scheduler.stable_s=0")
_LINES, _BATCH = 6000, 50
_TOPIC = "page-views"
_WRONG = ["abc /cart", "9e10 /cart"]
"""Lines that would be lost in the count, or would make others late."""


class Answers:
    """The server of answers."""

    def __init__(self, sandbox: Sandbox, program: Path) -> None:
        self._port = free_port()
        self._command = [sys.executable, str(program), "--port", str(self._port)]
        self._environment = sandbox.env
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, env=self._environment)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def views(self) -> Counter[str]:
        """What it answers about all pages; nothing while it starts."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/views", timeout=30) as answer:
                found: dict[str, int] = json.load(answer)["views"]
        except OSError:
            return Counter()
        return Counter(found)


def kill(run: HeronRun, role: str, name: str) -> None:
    """Kill a process, and wait for the one that replaces it."""
    run.until(lambda: run.processes(role, name), f"a {role}{name}")
    before = {process.pid for process in run.processes(role, name)}
    run.processes(role, name)[0].kill()
    run.until(lambda: {each.pid for each in run.processes(role, name)} - before, f"another {role}{name}")


def test_each_line_is_counted_once_whatever_dies(
    sandbox: Sandbox, kafka: KafkaServer, scribe_clients: ScribeClients, examples: Path
) -> None:
    """Real clients of Scribe log; one process of each kind of Heron dies, of both pipelines, and so does the server."""
    kafka.start()
    admin = AdminClient({"bootstrap.servers": kafka.address})
    admin.create_topics([NewTopic(_TOPIC, 4, 1)])[_TOPIC].result(60)
    folder, programs = sandbox.root / "stack", examples / "stack"
    folder.mkdir()
    ports = f"{free_port()},{free_port()}"
    arguments = ("--kafka", kafka.address, "--folder", str(folder), "--ports", ports)
    run = sandbox.start(programs / "collect.py", *_PATIENT, args=arguments)
    counting = sandbox.start(programs / "count.py", *_PATIENT, args=("--kafka", kafka.address))
    collectors = folder / "collectors"
    run.until(lambda: collectors.exists() and len(announced(collectors)) == 2, "collectors that listen")
    answers = Answers(sandbox, programs / "serve.py")
    answers.start()
    try:
        begin_s = wall_s()
        lines = [f"{begin_s + number / 100:.2f} /page-{number % 7}" for number in range(_LINES)]
        lines[100:102] = _WRONG
        clients = [
            scribe_clients.log(kind, [place], _TOPIC, lines, _BATCH)
            for kind, place in zip(("facebook", "java"), announced(collectors), strict=True)
        ]
        counting.until(lambda: answers.views().total() > 100, "the first views")
        components = {Path(command[-1]).stem.rpartition("-")[0] for _, command in run.commands("instance")}
        assert {"collect-to-check", "sink-1"} < components
        for role, names in (("instance", [f"/{each}-" for each in sorted(components)]), ("stmgr", [""]),
                            ("tmanager", [""]), ("executor", ["/c1"])):  # fmt: skip
            for name in names:
                kill(run, role, name)
                counting.grows(lambda: answers.views().total(), f"views after a kill of {role}{name}")
        answers.kill()
        answers.start()
        for client in clients:
            assert client.finished()["ok"] == _LINES // _BATCH
        expected = Counter(line.split()[1] for line in lines * 2 if line not in _WRONG)
        counting.until(lambda: answers.views().total() >= expected.total(), "all views")
        assert answers.views() == expected
        letters = json.loads(sandbox.output_of("dead-letters", "stack-collect", "list", "--json"))
        assert {(each["step"], line) for each in letters for line in _WRONG if line in str(each["values"])} == {
            ("check", line) for line in _WRONG
        }
    finally:
        answers.kill()

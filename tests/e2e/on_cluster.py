"""What tests on shared clusters have in common: commands with a profile, the demo, a journal, and updates."""

from __future__ import annotations

import json
import random
import re
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from pydoc_data import topics
from typing import TYPE_CHECKING

import boto3

from heron.clock import monotonic_s
from heron.errors import UnreachableError, UsageError
from heron_cli.client import connect
from heron_testing.waiting import wait_until, wait_until_grown
from line_journal import Lines
from tallies import check_tallies

if TYPE_CHECKING:
    from heron_cli.topologies.running.status_report import StatusReport
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox
    from heron_testing_servers.s3 import S3Server
    from heron_testing_servers.zookeeper import ZooKeeperServer

__all__ = ["BACK_S", "ClusterJournal", "Harm", "OnCluster", "shipped_profile"]

BACK_S = 120.0
"""How long a cluster may take to bring a container back."""

_AWAY_S = 30.0
_CHAOS_S = 300.0
_TUPLES = 1000
_LOGS = frozenset({"tmanager-0", "stmgr-1", "stmgr-2"})
"""A process of each container of the demo."""

Harm = Callable[[], set[int]]
"""Does harm to a cluster, and returns the containers that it ends."""


class OnCluster:
    """The commands of a sandbox with one profile, whose scheduler is a cluster."""

    def __init__(self, sandbox: Sandbox, profile: str) -> None:
        self.sandbox, self.profile = sandbox, profile

    def output_of(self, *words: str, code: int = 0) -> str:
        """Return the output of a command about a topology."""
        return self.sandbox.output_of(*words, "--profile", self.profile, code=code)

    def submit(self, program: str | Path, *args: str, options: tuple[str, ...] = ()) -> HeronRun:
        """Submit a topology."""
        run = self.sandbox.start(program, *options, args=args, command=f"submit {self.profile}")
        assert run.wait() == 0, run.all_output
        return run

    def status(self, topology: str) -> StatusReport | None:
        """Return the status of a topology; None while its topology manager is being restarted.

        This process asks: a command needs a quarter of a second of a processor, and a test that waits asks often.
        """
        heron = self.sandbox.home / ".heron"
        overrides = {"statemgr.root": str(heron / "state")}
        with connect(self.profile, config_path=heron / "profiles", overrides=overrides, read_only=True) as client:
            try:
                return client.status(topology)
            except (UsageError, UnreachableError):
                return None

    def ends(self, topology: str, *, alone: bool = True) -> None:
        """Wait until a topology is listed as finished and, if it is alone, nothing is left."""

        def over() -> bool:
            listed = json.loads(self.sandbox.output_of("list", self.profile, "--json"))
            finished = any(each["name"] == topology and each["state"] == "finished" for each in listed)
            return finished and not (alone and self.sandbox.remaining())

        wait_until(over, BACK_S, f"{topology} has ended and left nothing")

    def count_example(
        self, examples: Path, loops: int, start: Callable[[HeronRun], None] | None = None, options: tuple[str, ...] = ()
    ) -> str:
        """Run the demo to its end, check its logs and that its counts are those of the text; return a status of it.

        `start` gets the submission that had these `options`. While the logs are read, the spouts pause.
        """
        counts = self.sandbox.root / "counts.tsv"
        arguments = ("--loops", str(loops), "--out", str(counts))
        submission = self.submit(examples / "word_count.py", *arguments, options=options)
        if start:
            start(submission)
        self.output_of("deactivate", "word_count", "--timeout", str(BACK_S))
        wait_until(self._has_logs, BACK_S, "heron logs has lines of each container, and what the author's code prints")
        followed = self.sandbox.start_command("logs", "word_count", "--follow", "--profile", self.profile)
        status = self.output_of("status", "word_count")
        self.output_of("activate", "word_count")
        assert followed.wait() == 0, followed.all_output
        assert re.search(r"^report/\d+ \| counts verified: ", followed.stdout, re.MULTILINE), followed.all_output
        self.ends("word_count")
        words = Counter(word for text in topics.topics.values() for word in text.lower().split())
        rows = (line.rsplit("\t", 1) for line in counts.read_text(encoding="utf-8").splitlines())
        assert {word: int(count) for word, count in rows} == {word: count * loops for word, count in words.items()}
        return status

    def _has_logs(self) -> bool:
        """Return whether `heron logs` has lines of each container of the running demo, and what one task prints."""
        lines = [json.loads(each) for each in self.output_of("logs", "word_count", "--json").splitlines()]
        printed = {each["who"] for each in lines if each["text"].startswith("after ") and not each["at"]}
        if not printed or not {each["who"] for each in lines if each["at"]} >= _LOGS:
            return False
        (reporter,) = printed
        last = self.output_of("logs", "word_count", "--task", reporter.partition("/")[2], "-n", "1")
        return re.fullmatch(rf"({reporter} \| .+\n)+", last) is not None

    def update(self, steps: Mapping[str, int], places: Callable[[], int]) -> None:
        """Change a topology while another one runs beside: each number is counted once, and both leave nothing.

        `steps` are options of `heron update`, with the number of places that the cluster has after each of them.
        """
        self.submit("steady.py")
        run = self.submit("updating.py")
        wait_until(self._tallied, BACK_S, "the first tuples: a topology that starts is not updated")
        for options, expected in steps.items():
            before = self._tallied()
            self.output_of("update", "updating", *options.split())
            wait_until(lambda n=before: self._tallied() > n + _TUPLES, BACK_S, f"tuples after {options}")  # type: ignore[misc]
            wait_until(lambda n=expected: places() == n, BACK_S, f"{expected} places after {options}")  # type: ignore[misc]
        (run.out / "stop").touch()
        self.ends("updating", alone=False)
        killed = json.loads(self.output_of("kill", "steady", "--json"))
        assert killed["left"] == []
        self.ends("updating")  # `heron list` removes what is left of it when the cluster has ended its job
        assert check_tallies(run) > 0  # spouts write their numbers when they close, which is after the end

    def _tallied(self) -> int:
        report = self.status("updating")
        return sum(each.executed for each in report.status.components if each.name == "tally") if report else 0


def shipped_profile(
    sandbox: Sandbox, name: str, options: Mapping[str, object], says: str, servers: tuple[ZooKeeperServer, S3Server]
) -> OnCluster:
    """Extend a shipped profile as users do: these options of the scheduler, state in ZooKeeper, packages in S3.

    `heron profiles check` asks all three servers; `says` is an answer of the cluster itself.
    """
    zookeeper, s3 = servers
    mark = f"e2e{secrets.token_hex(4)}"
    keys = {"aws_access_key_id": s3.access_key, "aws_secret_access_key": s3.secret_key, "region_name": s3.region}
    boto3.client("s3", endpoint_url=s3.url, **keys).create_bucket(Bucket=mark)
    sandbox.environ.update(
        HERON_ZOOKEEPER_HOSTS="{}:{}".format(*zookeeper.address),
        HERON_ZOOKEEPER_USER="heron",
        HERON_ZOOKEEPER_PASSWORD="open sesame",  # for a server on the loopback address
        E2E_STORE_PASSWORD=s3.secret_key,
    )
    uploader = {"driver": "s3", "bucket": mark, "endpoint_url": s3.url, "region": s3.region}
    credentials = {"access_key_id": s3.access_key, "secret_access_key": "${env:E2E_STORE_PASSWORD}"}
    profile = {
        "extends": name,
        "scheduler": dict(options),
        "statemgr": {"root": f"/{mark}"},
        "uploader": {**uploader, **credentials},
    }
    sandbox.write_profile(name, json.dumps(profile))  # JSON is YAML
    checked = sandbox.output_of("profiles", "check", name)
    assert all(each in checked for each in (says, "zookeeper", mark)), checked
    return OnCluster(sandbox, name)


class ClusterJournal:
    """A run that processes lines from the beginning until `let_go`."""

    def __init__(self, cluster: OnCluster, *options: str) -> None:
        self.cluster = cluster
        self.lines = Lines(cluster.sandbox, *options, pause_s=0.05, command=f"submit {cluster.profile}")
        assert self.lines.run.wait() == 0, self.lines.run.all_output
        self.flows("the start")

    def flows(self, after: str) -> None:
        """Wait until more lines are acked."""
        wait_until_grown(self.lines.acked_bytes, BACK_S, f"lines after {after}")

    def flows_on(self, after: str) -> None:
        """Check for half a minute that lines are acked."""
        end_s = monotonic_s() + _AWAY_S
        while monotonic_s() < end_s:
            self.flows(after)

    def survives(self, harm: Harm) -> None:
        """Do harm, and wait until the containers that it ends run again, alone, and lines flow."""
        wait_until(lambda: len(self._attempts()) == 3, BACK_S, "all containers run")
        before = self._attempts()
        self._is_back(before, harm(), harm.__name__)
        self.flows(harm.__name__)
        self._has_no_copies(harm.__name__)

    def survives_minutes(self, seed: int, harms: Sequence[Harm]) -> None:
        """Do harm of any kind for five minutes; each one begins when the last one is over."""
        chance = random.Random(seed)
        begin_s = monotonic_s()
        done: list[str] = []
        while monotonic_s() < begin_s + _CHAOS_S:
            harm = chance.choice(harms)
            done.append(harm.__name__)
            self.survives(harm)
        print(f"seed {seed}, {monotonic_s() - begin_s:.0f} s: {done}")  # noqa: T201 - the report of a run by hand

    def loses_leader(self, machines: Callable[[], Mapping[int, str]], lose: Callable[[str], None]) -> None:
        """Lose the machine of the leading topology manager: the standby, which is on another one, leads.

        `machines` returns those of the containers.
        """
        wait_until(lambda: {0, 1} == set(self.managers()), BACK_S, "a topology manager and its standby")
        leader = self.managers()[0]
        where = machines()
        assert where[0] != where[1], where
        lose(where[leader])
        wait_until(lambda: self.managers()[:1] == [1 - leader], BACK_S, f"the standby of {leader} leads")

    def managers(self) -> list[int]:
        """Return the containers of the topology managers, that of the leader first; none while none leads."""
        report = self.cluster.status("journal")
        if report is None or report.status.leader is None:
            return []
        return [report.status.leader.container_id, *(each.container_id for each in report.status.standbys)]

    def kill_executor(self) -> set[int]:
        """Kill an executor, with SIGKILL: its launcher starts it again."""
        self.lines.run.the("executor", "/c1.json").kill()
        return {1}

    def kill_launcher(self) -> set[int]:
        """Kill a launcher, with SIGKILL: its executor ends with it, and the cluster starts it again."""
        launcher = self.lines.run.the("executor", "/c2.json").parent()
        assert launcher is not None
        launcher.kill()
        return {2}

    def let_go(self) -> None:
        """End the run, and check that every word of every line has arrived."""
        self.lines.let_go()
        self.cluster.ends("journal")
        self.lines.check()

    def _attempts(self) -> dict[int, int]:
        """Return the number of starts of each running container."""
        report = self.cluster.status("journal")
        return {each.container_id: each.attempts for each in report.containers if each.running} if report else {}

    def _is_back(self, before: dict[int, int], ended: set[int], after: str) -> None:
        now: dict[int, int] = {}

        def are_back() -> bool:
            now.clear()
            now.update(self._attempts())
            return len(now) == len(before) and all(now[each] > before[each] for each in ended)

        wait_until(are_back, BACK_S, f"{ended} of {before} run again after {after}")
        assert {each for each in now if now[each] > before[each]} == ended, f"{after}: {before} became {now}"

    def _has_no_copies(self, after: str) -> None:
        """Wait until each container has one executor: a copy on a lost machine ends by itself."""

        def executors() -> list[int]:
            return [len(self.lines.run.processes("executor", f"/c{each}.json")) for each in range(3)]

        wait_until(lambda: executors() == [1, 1, 1], BACK_S, f"one executor for each container after {after}")

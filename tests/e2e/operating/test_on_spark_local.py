"""The profile `spark` as shipped: Spark on this machine, with local files."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import urllib.request
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from pydoc_data import topics
from typing import TYPE_CHECKING

import msgspec
import psutil
import pytest

from heron.clock import monotonic_s
from heron.driver_kit.core_version import core_version
from heron.spi.driver import DriverRef
from heron.spi.scheduler import ContainerSpec
from heron_scheduler_spark.messages.task_messages import Order
from heron_scheduler_spark.worker.container_task import run_container
from heron_testing.waiting import wait_until
from heron_testing_servers.absence import not_here
from visible_data import logs, processes

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

pytestmark = pytest.mark.servers

_HERE = ("--profile", "spark")
_GUARDED = ("--profile", "guarded")
_LOOPBACK = {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
_SECRET = "kept = to:itself #4711"  # with characters that a properties file must escape
_LOOPS, _BACK_S = 30, 180.0
_ANSWER_S = 20.0
_LOCALFS = "heron_statemgr_localfs.state_manager:LocalFsStateManager"
_ZOOKEEPER = "heron_statemgr_zookeeper.state_manager:ZookeeperStateManager"
_UNSENT = """\
import threading
from heron.api import Spout, TopologyBuilder

class Nothing(Spout):
    outputs = ("nothing",)
    def next_tuple(self): self.end()

builder = TopologyBuilder("unsent")
builder.set_config({{"lock": {value}}})
builder.add_spout("nothing", Nothing, par=1)
builder.build_and_submit()
"""


@pytest.fixture
def java() -> None:
    """The requirements of Spark."""
    if shutil.which("java") is None:
        not_here("there is no `java` on the PATH; install a JRE of 17 or newer")


@pytest.mark.usefixtures("java")
def test_the_example_counts_exactly_and_its_status_and_logs_are_shown(sandbox: Sandbox, examples: Path) -> None:
    """The commands of the README: submit, status, logs. The counts are those of the text."""
    counts = sandbox.root / "counts.tsv"
    args = ("--loops", str(_LOOPS), "--out", str(counts))
    run = sandbox.run(examples / "word_count.py", args=args, command="submit spark")
    assert run.wait() == 0, run.all_output
    output = sandbox.output_of("status", "word_count", *_HERE)
    assert "Spark application local-" in output
    for container in range(3):
        assert f"container {container}: executor driver on " in output
    wait_until(lambda: " words: the " in sandbox.output_of("logs", "word_count", *_HERE), _BACK_S, "what a task prints")
    wait_until(lambda: _is_over(sandbox), _BACK_S, "the end")
    words = Counter(word for text in topics.topics.values() for word in text.lower().split())
    rows = (line.rsplit("\t", 1) for line in counts.read_text(encoding="utf-8").splitlines())
    assert {word: int(count) for word, count in rows} == {word: count * _LOOPS for word, count in words.items()}


@pytest.mark.usefixtures("java")
@pytest.mark.parametrize("harm", [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=pytest.mark.soak)])
def test_a_topology_is_visible_from_another_machine_and_a_kill_leaves_nothing(
    sandbox: Sandbox, harm: signal.Signals
) -> None:
    """No processes or files are left, also after a JVM was killed or hung, and with a damaged state.

    While it runs, other machines cannot connect to it, and other users see no secret of `scheduler.conf`. It needs code
    that only `scheduler.py_files` provides.
    """
    _write_guarded(sandbox)
    (sandbox.root / "spark-defaults.conf").write_text("spark.of.this.user kept\n", encoding="utf-8")
    sandbox.environ["SPARK_CONF_DIR"] = str(sandbox.root)
    words = ("--set", "scheduler.stop_grace_s=1", "--set", "scheduler.silence_s=10")
    needed = ("--needs", "brought_alone brought_packed")
    run = sandbox.run("steady.py", *words, args=needed, command="submit guarded")
    assert run.wait() == 0, run.all_output
    wait_until((run.out / "progress").exists, _BACK_S, "tuples")
    elsewhere = sandbox.output_of(
        "status", "steady", *_GUARDED, "--set", f"scheduler.root={sandbox.root / 'elsewhere'}"
    )
    assert "Spark application local-" in elsewhere  # as on another machine, whose scheduler does not have the job
    assert "Spark UI: http" in elsewhere
    driver = run.the("spark driver")
    (jvm,) = (each for each in driver.children() if each.name() == "java")
    assert {each.laddr.ip for each in jvm.net_connections("tcp") if each.status == psutil.CONN_LISTEN} <= _LOOPBACK
    shown = [*processes(sandbox), *logs(sandbox), *_pages(sandbox)]
    assert len(shown) > 20
    assert not [text for text in shown if _SECRET.encode() in text]
    jvm.send_signal(harm)
    # A container that starts before the driver notices the end of its application is started once more.
    wait_until(lambda: len(again := _attempts(sandbox)) == 3 and min(again) > 1, _BACK_S, "all containers run again")
    (sandbox.home / ".heron" / "state" / "executionstate" / "steady").write_text("by hand", encoding="utf-8")
    sandbox.output_of("kill", "steady", *_GUARDED)
    assert not run.processes("executor")
    assert not sandbox.remaining(), "the copy of that node still names its package"


@pytest.mark.parametrize(
    ("value", "path", "output"),
    [
        ("threading.Lock()", os.defpath, r"'unsent': lock: a value of type lock is not JSON; give"),
        ("1", "/nowhere", r"there is no `java` on the PATH, and JAVA_HOME is not set; install a JRE of version 17"),
    ],
)
def test_an_impossible_topology_is_refused_before_anything_starts(
    sandbox: Sandbox, value: str, path: str, output: str
) -> None:
    """A topology with a value that cannot be sent; a machine without Java."""
    file = sandbox.root / "unsent.py"
    file.write_text(_UNSENT.format(value=value), encoding="utf-8")
    sandbox.environ.update(PATH=path, JAVA_HOME="")
    run = sandbox.run(file, command="submit spark")
    assert run.wait() == 2, run.all_output
    assert re.search(rf"^heron: error: .*{output}", run.stderr, re.MULTILINE), run.all_output


@pytest.mark.parametrize(
    ("name", "entry", "options", "output"),
    [
        ("zookeeper", _ZOOKEEPER, {"hosts": "127.0.0.1:9", "root": "/heron"}, r".*127\.0\.0\.1:9.*"),
        ("localfs", _LOCALFS, {"root": "{tmp}"}, r"the state manager has no keys of topology 't': .* another state .*"),
    ],
)
def test_a_worker_that_cannot_reach_the_state_manager_reports_it(
    tmp_path: Path, name: str, entry: str, options: dict[str, str], output: str
) -> None:
    """One line names the worker and the missing state; the command shows it."""
    written = {key: value.format(tmp=tmp_path) for key, value in options.items()}
    unused = DriverRef("none", "none", "none:None")
    spec = ContainerSpec(
        "t", "t-1", 1, 1, "/run", "/log", "file:x", DriverRef("statemgr", name, entry, dict(written)), unused
    )
    order = Order(1, "ticket", "tcp://127.0.0.1:9", core_version(), 5.0, 1.0, spec=msgspec.to_builtins(spec))
    began_s = monotonic_s()
    (reason,) = run_container([msgspec.json.encode(order).decode()])
    assert re.fullmatch(f"on {os.uname().nodename}: {output}", reason), reason
    assert monotonic_s() - began_s < _ANSWER_S


def _is_over(sandbox: Sandbox) -> bool:
    """Return whether it is listed as finished and nothing of it is left; any list cleans up ended topologies."""
    return "finished" in sandbox.output_of("list", "spark") and not sandbox.remaining()


def _write_guarded(sandbox: Sandbox) -> None:
    """Write the profile ``guarded``: the shipped one, with Spark secrets in all supported forms."""
    secret = sandbox.root / "secret"
    secret.write_text(_SECRET, encoding="utf-8")
    secret.chmod(0o600)
    folder = sandbox.home / ".heron" / "profiles"
    folder.mkdir(parents=True)
    written = f"${{file:{secret}}}"
    conf = json.dumps({"spark.authenticate.secret": written, "spark.ssl.keyStorePassword": written})
    alone, packed = sandbox.root / "brought_alone.py", sandbox.root / "brought.zip"
    alone.touch()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("brought_packed.py", "")
    profile = f"extends: spark\nscheduler: {{conf: {conf}, py_files: [{alone}, {packed}]}}\n"
    (folder / "guarded.yaml").write_text(profile, encoding="utf-8")


def _pages(sandbox: Sandbox) -> Iterator[bytes]:
    page = next(
        each["url"] for each in sandbox.status_document("steady", *_GUARDED)["links"] if each["title"] == "Spark UI"
    )
    (application,) = json.loads(_read(f"{page}/api/v1/applications"))
    for part in ("environment", "allexecutors", "jobs"):
        output = _read(f"{page}/api/v1/applications/{application['id']}/{part}")
        if part == "environment":
            settings = dict(json.loads(output)["sparkProperties"])
            # The file of this user is included; values with such names are not shown.
            assert settings["spark.of.this.user"] == "kept"
            assert settings["spark.ui.killEnabled"] == "false"
            assert "redacted" in settings["spark.authenticate.secret"]
        yield output


def _read(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=_ANSWER_S) as answer:  # noqa: S310
        output: bytes = answer.read()
        return output


def _attempts(sandbox: Sandbox) -> list[int]:
    try:
        status = sandbox.status_document("steady", *_GUARDED)
    except AssertionError:  # the topology manager is being restarted, the command says
        return []
    return [each["attempts"] for each in status["containers"] if each["running"]]

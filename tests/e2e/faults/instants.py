"""Kill a command at every system call that changes something, and let the next command inspect the result.

``python instants.py submit|kill ROOT`` runs the steps of the command in a forked child. The child kills itself at its
k-th change, for k = 1, 2, …, until the command completes. A change is a file that is opened for writing, created,
renamed, removed or locked, a started process, or a connected socket. After each death a `heron list` runs. Then the old
or the new state must be there, complete. The script writes one JSON line for each instant: the change and the result.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from heron.clock import monotonic_s
from heron.spi.scheduler import Scheduler
from heron.spi.uploader import Uploader
from heron_cli.catalog.drivers import Drivers
from heron_cli.launch.loading.loaded import LoadedTopology, LoadingTopology
from heron_cli.launch.prepare import prepare
from heron_cli.launch.submission import Terms, new_submission, start_topology
from heron_cli.profiles import load_profile
from heron_cli.profiles.overrides import Overrides
from heron_cli.topologies.environment import Environment, open_environment
from heron_cli.topologies.runs.kill_topology import kill_topology
from heron_cli.topologies.runs.topology_list import list_topologies
from heron_cli.view.live.quiet_progress import QuietProgress

TOPOLOGY = """
from heron.api import Spout, Topology

class Lines(Spout):
    outputs = ["line"]
    def next_tuple(self):
        self.end()

class Words(Topology):
    lines = Lines.spec(par=1)
"""

PROFILE = """
scheduler: {{driver: local, root: {root}/jobs, stop_grace_s: 1, executor: [/bin/sh, -c, exec sleep 600]}}
statemgr: {{driver: localfs, root: {root}/state}}
uploader: {{driver: localfs, root: {root}/packages}}
packing: {{driver: roundrobin}}
metricsink: []
run: {{log_dir: {root}/logs, run_dir: {root}/run}}
"""

TOUCHES = {
    "fcntl.flock",
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "shutil.rmtree",
    "socket.connect",
    "subprocess.Popen",
}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
GONE_S = 10.0
NAME = "Words"


class Scenario:
    """The environment of the script, and the topology in it."""

    def __init__(self, root: Path) -> None:
        for folder in (root, root / "run", root / "profiles"):
            folder.mkdir(mode=0o700, exist_ok=True)
        (root / "profiles" / "here.yaml").write_text(PROFILE.format(root=root), encoding="utf-8")
        (root / "words.py").write_text(TOPOLOGY, encoding="utf-8")
        self.root = root
        self._profile = load_profile("here", Drivers().resolve, config_path=root / "profiles")  # which takes a while
        self._loaded: LoadedTopology
        with LoadingTopology(str(root / "words.py"), ()) as loading:
            self._loaded = loading.result()

    def environment(self) -> Environment:
        """Open the environment, as each command does."""
        return open_environment(self._profile)

    def submit(self) -> None:
        """Submit the topology, detached."""
        environment = self.environment()
        prepared = prepare(self._loaded, environment.profile, Overrides())
        start_topology(environment, new_submission(environment.profile, prepared, (), Terms()), Silence())
        environment.statemgr.close()

    def kill(self) -> None:
        """Kill the topology; fail if something of it is left."""
        environment = self.environment()
        ending = kill_topology(environment, NAME, 5.0, QuietProgress())
        environment.statemgr.close()
        assert not ending.left, ending

    def state(self) -> str:
        """Return its state in the next `heron list`; "" if it is not listed."""
        environment = self.environment()
        found = list_topologies(environment)
        environment.statemgr.close()
        return "".join(each.state for each in found.entries)

    def left(self) -> list[str]:
        """Return all remaining files except logs, the last report, and the counters of removed nodes."""
        found = [str(each) for each in (self.root / "run").iterdir()]
        for folder in ("jobs", "packages", "state"):
            files = [each for each in (self.root / folder).rglob("*") if not each.is_dir() or folder == "jobs"]
            found += [str(each) for each in files if each.parent.name != "reports" and not _is_counter(each)]
        return found + [text for text in map(_command, Path("/proc").glob("[0-9]*/cmdline")) if str(self.root) in text]


class Silence:
    """A progress display that shows nothing."""

    def step(self, text: str) -> None:
        """Ignore the text."""

    def note(self, text: str) -> None:
        """Ignore the text."""

    def uploading(self, uploader: Uploader, size_bytes: int) -> AbstractContextManager[None]:
        return nullcontext()

    def scheduling(self, scheduler: Scheduler) -> AbstractContextManager[None]:
        return nullcontext()


def walk(scenario: Scenario, command: Callable[[], None], before: Callable[[], None]) -> int:
    """Die at each instant in turn; return the number of instants."""
    instant = 0
    while True:
        instant += 1
        before()
        touched = _die_at(instant, command)
        state = scenario.state()
        if state not in {"", "killed"}:
            scenario.kill()
        _until_nothing_is_left(scenario)
        sys.stdout.write(json.dumps({"instant": instant, "touched": touched, "found": state}) + "\n")
        if not touched:
            return instant - 1


def _die_at(instant: int, command: Callable[[], None]) -> str:
    """Return the change that the child was about to make when it died; "" if the command completed."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        _count_down(instant, writer)
        command()
        os._exit(0)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reader) as pipe:
        touched = pipe.read()
    died = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    assert died == bool(touched), status
    assert died or os.waitstatus_to_exitcode(status) == 0, status
    return touched


def _count_down(instant: int, writer: int) -> None:
    left = instant

    def audit(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event not in TOUCHES and not (event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES):
            return
        left -= 1
        if left == 0:
            os.write(writer, f"{event} {str(arguments[0])[:200]}".encode())
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(audit)


def _until_nothing_is_left(scenario: Scenario) -> None:
    deadline_s = monotonic_s() + GONE_S
    while (left := scenario.left()) and monotonic_s() < deadline_s:
        signal.sigtimedwait([signal.SIGUSR1], 0.02)
    assert not left, left


def _is_counter(path: Path) -> bool:
    return path.name.startswith(".") and path.suffix in {".lock", ".held", ".tmp"}


def _command(path: Path) -> str:
    try:
        text = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
    return "" if "instants.py" in text else text


def main(command: str, root: str) -> None:
    """Run one command with all its instants."""
    scenario = Scenario(Path(root))
    scenario.submit()  # permanent folders and counters are created once, and would shift the instants
    scenario.kill()
    if command == "submit":
        walk(scenario, scenario.submit, lambda: None)
    else:
        walk(scenario, scenario.kill, scenario.submit)


if __name__ == "__main__":
    main(*sys.argv[1:])

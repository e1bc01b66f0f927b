"""The fork server with real processes: what it forks is like a new interpreter, and a failure costs only time."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from heron.clock import wait_for
from heron.driver_kit.child_processes import ProcessIdentity
from heron.driver_kit.fork_server import can_fork, fork_obstacle, start_obstacle
from heron.driver_kit.fork_server_loop import check_single_thread
from heron.errors import HeronError

EXECUTOR = """
import json, os, signal, sys, threading
from pathlib import Path
from heron.clock import wait_for
from heron.executor.children import Children
from heron.driver_kit.fork_server import ForkServer
from heron.driver_kit.process_starter import ProcessStarter

starter = ProcessStarter()
# Its command line is not that of an executor.
server = starter._server = ForkServer.fork("c1.json")
children = Children(starter=starter)
output = Path(sys.argv[1])

def start(*words):
    return children.start("word-1", [sys.executable, "-P", "-m", *words], output)

def end():
    while not (ended := children.reap()):
        signal.sigtimedwait([signal.SIGCHLD], 1.0)
    return [ended[0].code, ended[0].reason]

def shown(text):
    assert wait_for(lambda: children.move_outputs() or text in output.read_text(), 30.0, 0.01)

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
"""

ROLE = """
import json, os, random, signal, sys, threading
from heron.driver_kit.parent_process import bind_to_parent

def main():
    how = sys.argv[1]
    if how == "exit":
        sys.exit(7)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "raise":
        raise ValueError("no such word")
    if how == "wait":
        bind_to_parent()
        print("waits", flush=True)
        signal.pause()
    handled = [each.name for each in signal.Signals if signal.getsignal(each) not in (signal.SIG_DFL, None)]
    print(json.dumps({
        "argv": [os.path.basename(sys.argv[0]), *sys.argv[1:]],
        "orig_argv": sys.orig_argv,
        "shown": open("/proc/self/cmdline").read().split("\\0")[:-1],
        "name": __name__,
        "main": sys.modules["__main__"].__spec__.name,
        "parent": os.getppid(),
        "leads": os.getpgid(0) == os.getpid(),
        "thread": threading.main_thread().native_id == os.getpid(),
        "files": sorted(
            os.readlink(f"/proc/self/fd/{each}").partition("[")[0] for each in os.listdir("/proc/self/fd")[:-1]
        ),
        "handled": sorted(handled),
        "flags": str(sys.flags),
        "path": sys.path,
        "environ": sorted(os.environ),
        "random": random.random(),
    }))
    print("one line", file=sys.stderr)

if __name__ == "__main__":
    main()
"""


def run(folder: Path, *lines: str) -> subprocess.CompletedProcess[str]:
    """Runs a program that has a fork server, as an executor has one; its roles are modules in the folder."""
    (folder / "role_stand_in.py").write_text(ROLE)
    program = "\n".join([EXECUTOR, *lines, "children.kill_all()"])
    return subprocess.run(
        [sys.executable, "-P", "-c", program, str(folder / "output")],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(folder), "LANG": "C.UTF-8"},
        check=False,
    )


def result(folder: Path, *lines: str) -> object:
    """What the program prints as JSON."""
    done = run(folder, *lines)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("how", "code", "reason"),
    [
        ("exit", 7, "exit code 7"),
        ("kill", -9, "killed by SIGKILL"),
        ("raise", 1, "exit code 1: ValueError: no such word"),
    ],
)
def test_the_executor_sees_the_end_of_a_forked_process_as_of_any_child(
    tmp_path: Path, how: str, code: int, reason: str
) -> None:
    """The restart policy depends on the exit code, and users read the reason."""
    assert result(tmp_path, f'start("role_stand_in", "{how}")', "print(json.dumps(end()))") == [code, reason]


def test_a_forked_process_is_like_a_new_interpreter(tmp_path: Path) -> None:
    """Roles and user code see the same arguments, path, flags, environment, signals and files, under one parent."""
    found = []
    for before in ("pass", "server.close(); children = Children()"):
        (tmp_path / "output").unlink(missing_ok=True)
        parent = result(
            tmp_path, before, 'start("role_stand_in", "tell", "c1/word-1.json")', "end()", "print(os.getpid())"
        )
        error, shown = (tmp_path / "output").read_text().splitlines()
        assert error == "one line"
        seen = json.loads(shown)
        assert seen.pop("parent") == parent
        found.append(seen)
    forked, executed = found
    assert forked.pop("random") != executed.pop("random")
    assert forked == executed
    assert forked["shown"][3:] == ["role_stand_in", "tell", "c1/word-1.json"]


def test_forked_processes_do_not_share_random_numbers(tmp_path: Path) -> None:
    """Spouts that sample would otherwise all choose the same."""
    result(tmp_path, *['start("role_stand_in", "tell")', "end()"] * 2, "print(0)")
    lines = (tmp_path / "output").read_text().splitlines()
    first, second = (json.loads(line)["random"] for line in lines if line.startswith("{"))
    assert first != second


@pytest.mark.matrix
def test_an_instance_finds_the_modules_of_a_new_interpreter(tmp_path: Path) -> None:
    """A module of the author hides one of a library if the engine has not imported it; so nothing may be added."""
    (tmp_path / "loaded.py").write_text("import heron.instance.main, json, sys; print(json.dumps(sorted(sys.modules)))")
    start = 'start("loaded")'
    as_executor = [
        "server.close()",
        "from heron.executor.main import SHARED",
        "import importlib",
        "[importlib.import_module(each) for each in SHARED]",
        'imports = {"loaded": ("heron.executor.main", "heron.instance.main")}',
        'starter._server = ForkServer.fork("c1.json", imports=imports)',
    ]
    sets = []
    for before in (as_executor, ["server.close(); children = Children()"]):
        (tmp_path / "output").unlink(missing_ok=True)
        result(tmp_path, *before, start, "end()", "print(0)")
        sets.append(set(json.loads((tmp_path / "output").read_text().splitlines()[-1])))
    assert {each for each in sets[0] - sets[1] if not each.startswith("heron.")} <= EXECUTORS


EXECUTORS = {
    *("_posixsubprocess", "fcntl", "subprocess", "pwd", "grp"),
    *("_socket", "array", "select", "selectors", "socket"),
}
"""What starts a process, or speaks to the server, imports it before the server is forked."""


def test_a_killed_server_leaves_its_processes_and_the_next_is_a_new_interpreter(tmp_path: Path) -> None:
    """A running topology must not depend on the server."""
    found = result(
        tmp_path,
        'pid = start("role_stand_in", "wait")',
        'shown("waits")',
        "os.kill(server.pid, signal.SIGKILL)",
        "os.kill(pid, 0)",
        'children.ask("word-1")',
        "first = end()",
        'start("role_stand_in", "exit")',
        "print(json.dumps([first, end(), server.pid]))",
    )
    assert found == [[-15, "killed by SIGTERM (by its executor)"], [7, "exit code 7"], 0]


@pytest.mark.matrix
def test_a_stopped_server_does_not_stop_its_executor(tmp_path: Path) -> None:
    """The executor has a limit for the answer, and no process that it does not know remains."""
    found = result(
        tmp_path,
        "server._channel.settimeout(0.1)",
        "os.kill(server.pid, signal.SIGSTOP)",
        'start("role_stand_in", "exit")',
        "print(json.dumps([end(), server.pid]))",
    )
    assert found == [[7, "exit code 7"], 0]


def test_a_server_with_a_thread_refuses_to_fork_and_names_the_thread(tmp_path: Path) -> None:
    """A library that starts a thread at its import must not be in the server."""
    found = result(
        tmp_path,
        "server.close()",
        "threading.Thread(target=threading.Event().wait, name='pool-of-library', daemon=True).start()",
        "from heron.driver_kit import fork_server_loop",
        "fork_server_loop.other_threads()",
        "from heron.errors import HeronError",
        "try: fork_server_loop.check_single_thread()",
        "except HeronError as error: print(json.dumps(str(error)))",
    )
    assert found == "cannot fork beside the threads pool-of-library; an import must not start a thread"


def test_a_forked_process_ends_with_its_executor(tmp_path: Path) -> None:
    """The kernel kills it, because the executor is its parent."""
    done = run(
        tmp_path,
        'start("role_stand_in", "wait")',
        'shown("waits")',
        'print(children.pid("word-1"), server.pid, flush=True)',
        "os.kill(os.getpid(), signal.SIGKILL)",
    )
    assert done.returncode == -9
    processes = [ProcessIdentity.of(int(pid)) for pid in done.stdout.split()]
    assert len(processes) == 2
    assert wait_for(lambda: not any(each.alive() for each in processes), 10.0, 0.02)


@pytest.mark.parametrize(
    ("words", "can"),
    [
        ((sys.executable, "-P", "-m", "heron.stmgr.main", "c1/stmgr.json"), True),
        ((sys.executable, "-P", "-O", "-m", "heron.stmgr.main", "c1/stmgr.json"), False),
        (("/another/python", "-P", "-m", "heron.stmgr.main", "c1/stmgr.json"), False),
        ((sys.executable, "stand_in.py"), False),
    ],
)
def test_only_this_interpreter_with_its_options_is_forked(words: tuple[str, ...], can: bool) -> None:
    """Another interpreter or option needs a new process."""
    assert can_fork(words) is can


def test_a_process_with_other_options_has_no_server() -> None:
    """Its options would hold for the forked processes."""
    assert "-P -m MODULE" in start_obstacle([sys.executable, "-m", "heron.executor.main", "c1.json"])
    assert not start_obstacle([sys.executable, "-P", "-m", "heron.executor.main", "c1.json"])


def test_a_thread_is_an_obstacle() -> None:
    """Also in the executor itself."""
    done = threading.Event()
    thread = threading.Thread(target=done.wait, name="early")
    thread.start()
    try:
        assert "early run" in fork_obstacle()
        with pytest.raises(HeronError, match="early"):
            check_single_thread()
    finally:
        done.set()
        thread.join()

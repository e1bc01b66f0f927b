"""The fixtures of real servers: installations are complete, and started servers end."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from heron_testing.ports import free_port
from heron_testing.waiting import Eventually
from heron_testing_servers.install import ServerNotInstalledError, debian_package, go_program, installed
from heron_testing_servers.server_process import ServerError, ServerProcess, answers


def is_running(pid: int) -> bool:
    try:
        return b") Z" not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache for this test."""
    monkeypatch.setenv("HERON_TESTS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def web(tmp_path: Path) -> ServerProcess:
    """The file server of the standard library."""
    port = free_port()
    command = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(port)]
    return ServerProcess(command, tmp_path / "log", lambda: answers(f"http://127.0.0.1:{port}/"))


def test_server_is_installed_once() -> None:
    """Only the first run installs it."""
    calls: list[Path] = []

    def install(folder: Path) -> None:
        calls.append(folder)
        (folder / "program").write_text("")

    first = installed("thing-1", install)
    assert installed("thing-1", install) == first
    assert len(calls) == 1
    assert (first / "program").is_file()


def test_installation_that_fails_leaves_nothing_and_is_tried_again(cache: Path) -> None:
    """An incomplete server would fail every later run, for a reason that is hard to find."""

    def fail(folder: Path) -> None:
        (folder / "half").write_text("")
        message = "the mirror is away"
        raise ServerNotInstalledError(message)

    with pytest.raises(ServerNotInstalledError, match="mirror"):
        installed("thing-1", fail)
    assert [path.name for path in cache.iterdir()] == [".thing-1.lock"]
    assert installed("thing-1", lambda _: None).is_dir()


def test_concurrent_requests_install_once() -> None:
    """Several sessions of a build begin at the same time."""
    calls: list[Path] = []
    threads = [threading.Thread(target=installed, args=("thing-1", calls.append)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1


def test_a_missing_package_names_the_failed_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine without apt, the error must say so, instead of a missing file later."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ServerNotInstalledError, match="`apt-get download some-server` does not run"):
        installed("some-server", debian_package("some-server"))


@pytest.mark.leaks_nothing
def test_server_serves_ends_and_starts_again(web: ServerProcess) -> None:
    """Tests of faults kill a server and restart it."""
    for end in (web.kill, web.stop):
        web.start()
        web.start()
        assert is_running(web.pid)
        end()
        end()
        assert web.pid == 0


def test_server_that_ends_shows_the_end_of_its_log(tmp_path: Path) -> None:
    """The log has the reason, and is not kept."""
    server = ServerProcess(["sh", "-c", "echo no such option; exit 3"], tmp_path / "log", lambda: False)
    with pytest.raises(ServerError, match=r"ended; its log .*\nno such option"):
        server.start()


def test_server_ends_with_the_tests_also_when_they_are_killed(tmp_path: Path, eventually: Eventually) -> None:
    """Otherwise each aborted run would leave a port and a hundred megabytes in use."""
    script = (
        "import os, pathlib, signal, sys\n"
        "from heron_testing_servers.server_process import ServerProcess\n"
        "server = ServerProcess(['sleep', '60'], pathlib.Path(sys.argv[1]), lambda: True)\n"
        "server.start()\n"
        "print(server.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "log")]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, timeout=60)
    pid = int(ran.stdout)
    eventually(lambda: not is_running(pid), what="the server is gone")


RUN = """
import pytest
from heron_testing_servers import etcd as etcd_module
from heron_testing_servers.install import ServerNotInstalledError

def missing(folder):
    raise ServerNotInstalledError("no such package")

@pytest.fixture(autouse=True, scope="session")
def nothing_installs():
    etcd_module.EtcdServer = missing

def test_with_a_server(etcd):
    pass

def test_without():
    pass
"""


@pytest.mark.matrix
@pytest.mark.parametrize(("ci", "outcome"), [("", "1 skipped"), ("true", "1 error")])
def test_a_missing_server_is_reported_and_fails_in_ci(tmp_path: Path, ci: str, outcome: str) -> None:
    """A green run without half of its tests would be misleading."""
    (tmp_path / "test_it.py").write_text(RUN)
    plugins = ("-p", "no:cacheprovider")
    command = [sys.executable, "-m", "pytest", "-m", "servers", *plugins, str(tmp_path)]
    ran = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert outcome in ran.stdout
    assert "1 deselected" in ran.stdout
    assert "etcd: its tests did not run: no such package" in ran.stdout
    assert (ran.returncode == 0) == (ci == "")


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program `go` on the PATH that prints this version and builds an empty file."""
    program = tmp_path / "go" / "go"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\n[ "$1" = env ] && echo go1.24.1 || { mkdir "$GOBIN"; echo "$2" >"$GOBIN/thing"; }\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return program


def test_a_go_program_is_built_into_its_folder(go: Path) -> None:
    """The build uses the named version, and writes only to the cache."""
    assert go.exists()
    folder = installed("thing-1", go_program("example.org/thing", "v1.2.3"))
    assert (folder / "bin" / "thing").read_text() == "example.org/thing@v1.2.3\n"


def test_a_go_that_is_too_old_is_named_with_what_is_needed(go: Path) -> None:
    """Debian's Go is too old: the build would fail much later, with an error about modules."""
    go.write_text("#!/bin/sh\necho go1.19.8\n")
    with pytest.raises(ServerNotInstalledError, match=r"is go1\.19\.8; install Go 1\.24 or newer"):
        installed("thing-1", go_program("example.org/thing", "v1.2.3"))

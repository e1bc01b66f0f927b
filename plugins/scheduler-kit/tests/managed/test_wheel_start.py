"""A bare interpreter starts a module of an archive of wheels, and says what is wrong with an archive."""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from heron.errors import ConfigError
from heron.spi.options import decode_options
from heron_scheduler_kit.managed.managed_options import ManagedOptions
from heron_scheduler_kit.managed.wheel_start import WheelsError, fitting

_PRINTS = "import os, sys\nfrom told import WORD\nprint(WORD, sys.argv[1], os.path.dirname(__file__))\n"
_BARE = str(Path(sys.base_prefix, "bin", f"python3.{sys.version_info[1]}"))


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive of two wheels; one has its modules in ``purelib``."""
    wheels = {
        "shows-1-py3-none-any.whl": {"shows.py": _PRINTS, "shows-1.data/scripts/shows": "#!"},
        "told-1-py3-none-any.whl": {"told-1.data/purelib/told.py": "WORD = 'ready'\n"},
    }
    for name, content in wheels.items():
        with zipfile.ZipFile(tmp_path / name, "w") as wheel:
            for path, text in content.items():
                wheel.writestr(path, text)
    made = tmp_path / "wheels.zip"
    with zipfile.ZipFile(made, "w") as outer:
        for name in wheels:
            outer.write(tmp_path / name, f"wheels/{name}")
    return made


@pytest.fixture
def served(archive: Path) -> Iterator[str]:
    """The archive on a server of HTTP."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(archive.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/{archive.name}"
        server.shutdown()
        thread.join()


def _started(address: str, sha256: str, folder: Path) -> subprocess.CompletedProcess[str]:
    options = ManagedOptions(python=_BARE, install="wheels", wheels=f"{address}#sha256={sha256}")
    command = options.python_command("shows", "there", folder=str(folder))
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_bare_interpreter_starts_a_module_of_the_wheels(archive: Path, served: str, tmp_path: Path) -> None:
    """From a server and from a path; the second start needs neither."""
    sha256, folder = _sha256(archive), tmp_path / "folder"
    for address in (served, str(archive)):
        started = _started(address, sha256, folder)
        assert (started.stderr, started.stdout.split()) == ("", ["ready", "there", str(folder / sha256)])
        assert [each.name for each in folder.iterdir()] == [sha256], "nothing else is left"
        again = _started(f"{address}.away", sha256, folder)
        assert again.stdout == started.stdout
        shutil.rmtree(folder)


def test_wrong_wheels_are_told_in_the_last_line(archive: Path, tmp_path: Path) -> None:
    """`heron status` shows the last line of a launcher that has ended."""
    folder, sha256 = tmp_path / "folder", _sha256(archive)
    changed = _started(str(archive), "0" * 64, folder)
    assert (changed.returncode, changed.stdout) == (1, "")
    told = f"the wheels at {archive} cannot be used: its SHA-256 is {sha256}; correct `scheduler.wheels`, or the file\n"
    assert changed.stderr == told
    missing = _started(f"{archive}.other", sha256, folder)
    assert "No such file or directory" in missing.stderr
    folder.chmod(0o777)
    assert "other users may write to" in _started(str(archive), sha256, folder).stderr


def test_wheels_are_chosen_by_their_names() -> None:
    """One archive may serve several interpreters and machines."""
    minor, machine = sys.version_info[1], platform.machine()
    here = [
        "a/pure-1.0-py2.py3-none-any.whl",
        f"own-1-cp3{minor}-cp3{minor}-manylinux_2_17_{machine}.manylinux2014_{machine}.whl",
        f"stable-1-cp38-abi3-manylinux2014_{machine}.whl",
    ]
    others = [
        f"own-1-cp39-cp39-manylinux2014_{machine}.whl",
        f"own-1-cp3{minor}-cp3{minor}-musllinux_1_2_{machine}.whl",
        f"own-1-cp3{minor}-cp3{minor}-manylinux2014_other.whl",
    ]
    assert fitting([*others, *here]) == here
    with pytest.raises(WheelsError, match=rf"own-1-.*\.whl does not fit Python 3\.{minor} on {machine}; make the arch"):
        fitting([*others, here[0]])
    with pytest.raises(WheelsError, match="has no wheels"):
        fitting([])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"install": "wheels"}, "install is 'wheels' and wheels is ''"),
        ({"wheels": "/x.zip"}, "install is 'present' and wheels is '/x.zip'"),
        ({"install": "wheels", "wheels": "https://host/x.zip"}, "sha256"),
        ({"install": "wheels", "wheels": f"ftp://host/x.zip#sha256={'0' * 64}"}, "use PATH#sha256=HEX"),
    ],
)
def test_an_incomplete_address_is_refused(options: dict[str, object], said: str) -> None:
    """Without a digest, a container that starts again next month could run other code."""
    with pytest.raises(ConfigError, match=said):
        decode_options(options, ManagedOptions, "scheduler")


def test_the_command_has_nothing_that_clusters_replace() -> None:
    """Nomad replaces ``${NAME}`` and Kubernetes ``$(NAME)`` in arguments."""
    options = ManagedOptions(install="wheels", wheels=f"/x.zip#sha256={'0' * 64}")
    assert not any("$" in each for each in options.python_command("module"))

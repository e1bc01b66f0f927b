"""``heron plugins`` as a separate process, with working, broken, duplicate, noisy and hanging plugins."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

HERON = Path(sys.executable).with_name("heron")

UPLOADER = """
import socket
import msgspec
from heron.errors import PackageError
from heron.spi.uploader import Uploader

class Options(msgspec.Struct, frozen=True):
    address: str = ""


class It(Uploader):
    '''Packages on a server.

    More of it.
    '''

    spi_version = 1
    capabilities = frozenset({"shared"})
    options_type = Options

    def __init__(self, address):
        self.address = address

    @classmethod
    def open(cls, options):
        return cls(options["address"])

    def check(self, timeout_s):
        host, _, port = self.address.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), timeout_s) as connection:
                return f"{connection.recv(100).decode()} at {self.address}"
        except OSError as error:
            raise PackageError(f"package server {self.address}: {error}; start it") from error

    def upload(self, package, name): ...
    def undo(self, uri): ...
    def download(self, uri, target): ...
"""

Plugin = Callable[..., None]
Heron = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder on the path."""
    (tmp_path / "site").mkdir()
    return tmp_path / "site"


@pytest.fixture
def plugin(site: Path) -> Plugin:
    """Put a distribution with one module and one entry point there."""

    def put(distribution: str, family: str, name: str, source: str) -> None:
        module = distribution.replace("-", "_")
        (site / f"{module}.py").write_text(source)
        info = site / f"{module}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(f"[heron.{family}]\n{name} = {module}:It\n")

    return put


@pytest.fixture
def heron(tmp_path: Path, site: Path) -> Heron:
    """Run a command in a separate home."""
    (tmp_path / "home").mkdir()

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "HOME": str(tmp_path / "home"), "PYTHONPATH": str(site)}
        return subprocess.run([HERON, *words], env=env, capture_output=True, text=True, check=False, timeout=60)

    return run


@pytest.fixture
def banner() -> Iterator[str]:
    """The address of a server that sends its name."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(b"Parcels 2.1")

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def listed(result: subprocess.CompletedProcess[str]) -> dict[tuple[str, str], dict[str, object]]:
    """Return the ``--json`` output, by distribution and name."""
    return {(each["distribution"], each["name"]): each for each in json.loads(result.stdout)}


@pytest.mark.matrix
def test_the_list_has_working_and_broken_plugins(heron: Heron, plugin: Plugin) -> None:
    """A plugin that fails, exits, prints or exists twice must not break the list or its JSON."""
    plugin("heron-uploader-well", "uploader", "well", UPLOADER)
    plugin("heron-uploader-old", "uploader", "old", UPLOADER.replace("spi_version = 1", "spi_version = 0"))
    plugin("heron-uploader-broken", "uploader", "broken", "import no_such_module")
    plugin("heron-uploader-quits", "uploader", "quits", "import sys\nsys.exit(3)")
    plugin("heron-uploader-loud", "uploader", "loud", "print('[]')\n" + UPLOADER)
    plugin("heron-uploader-twin", "uploader", "twin", UPLOADER)
    plugin("another-twin", "uploader", "twin", UPLOADER)
    plugin("heron-observer-mine", "hooks", "mine", "class It:\n    def heron_process_died(self): ...\n")
    result = heron("plugins", "list", "--json")
    found = listed(result)
    well = found["heron-uploader-well", "well"]
    assert (well["family"], well["version"], well["spi_version"], well["error"]) == ("uploader", "1.2", 1, "")
    assert (well["capabilities"], well["source"]) == (["shared"], "path")
    assert str(well["place"]).endswith("site")
    assert found["heron-uploader-loud", "loud"]["error"] == ""
    assert found["heron-core", "pickle"]["error"] == ""
    assert found["heron-observer-mine", "mine"]["capabilities"] == ["heron_process_died"]
    for distribution, name, error in (
        ("heron-uploader-old", "old", "upgrade with `pip install -U heron-uploader-old`"),
        ("heron-uploader-broken", "broken", "No module named 'no_such_module'"),
        ("heron-uploader-quits", "quits", "SystemExit"),
        ("heron-uploader-twin", "twin", "provided by another-twin and heron-uploader-twin"),
        ("another-twin", "twin", "provided by another-twin and heron-uploader-twin"),
    ):
        assert error in str(found[distribution, name]["error"])
    assert result.returncode == 0
    text = heron("plugins", "list", "uploader").stdout
    assert "does not work: uploader driver 'twin' is provided by" in text
    assert "pickle" not in text


@pytest.mark.matrix
def test_show_prints_every_property_of_a_plugin(heron: Heron, plugin: Plugin) -> None:
    """Users read this before they select a plugin, and after an error."""
    plugin("heron-uploader-well", "uploader", "well", UPLOADER)
    text = heron("plugins", "show", "uploader", "well").stdout
    for part in ("heron-uploader-well 1.2", "path, ", "heron_uploader_well:It", "version 1", "Packages on a server."):
        assert part in text
    assert "More of it" not in text
    (shown,) = [json.loads(heron("plugins", "show", "scheduler", "local", "--json").stdout)]
    assert shown["core_spi_version"] == shown["spi_version"]
    assert {"attached", "restart", "update"} <= set(shown["known_capabilities"])


@pytest.mark.matrix
def test_served_packages_are_listed_too(heron: Heron, plugin: Plugin) -> None:
    """Users of an old program look here for its package."""
    plugin("heron-compat-nothing", "compat", "nothing", "class It: ...")
    plugin("heron-compat-broken", "compat", "broken", "import no_such_module")
    found = listed(heron("plugins", "list", "compat", "--json"))
    served = found["heron-compat-heronpy", "heronpy"]
    assert (served["capabilities"], served["error"]) == (["heronpy"], "")
    assert {name for _, name in found} == {"broken", "heronpy", "nothing", "storm", "streamparse"}
    assert "its class names no package" in str(found["heron-compat-nothing", "nothing"]["error"])
    assert "No module named 'no_such_module'" in str(found["heron-compat-broken", "broken"]["error"])
    assert heron("plugins", "check", "compat").returncode == 2
    lines = heron("plugins", "show", "compat", "heronpy").stdout.splitlines()
    assert [line.split() for line in lines if line.startswith("serves")] == [["serves", "heronpy"]]


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("show", "uploader", "localfz"), "(nearest: 'localfs'); installed: "),
        (("show", "uploader", "s4"), "no uploader driver 's4' is installed (nearest: 's3'); installed: "),
        (("show", "hooks", "x"), "no observer 'x' is installed; installed: none"),
        (("show", "compat", "heronpie"), "no compat plugin 'heronpie' is installed (nearest: 'heronpy')"),
        (("list", "shceduler"), "no family 'shceduler' of plugins (nearest: 'scheduler')"),
        (("check", "uploader", "s4"), "no uploader driver 's4' is installed"),
        (("check", "--profile", "lokal"), "no profile 'lokal' (nearest: 'local')"),
        (("check", "--timeout", "0"), "--timeout: 0 s is not within 0.1 to 60 s"),
    ],
)
def test_an_unknown_plugin_is_reported_with_the_known_ones(heron: Heron, words: tuple[str, ...], message: str) -> None:
    """One line with the nearest name and the remedy."""
    result = heron("plugins", *words)
    assert result.returncode == 2
    assert result.stderr.startswith("heron: error: ")
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.matrix
def test_check_asks_the_servers_of_a_profile(heron: Heron, plugin: Plugin, banner: str, tmp_path: Path) -> None:
    """Servers that answer are listed; others are errors with the driver's message and an exit code for scripts."""
    plugin("heron-uploader-well", "uploader", "well", UPLOADER)
    profile = tmp_path / "profiles"
    profile.mkdir()
    (profile / "mine.yaml").write_text(
        "scheduler: {driver: local}\nstatemgr: {driver: localfs}\npacking: {driver: roundrobin}\n"
        f"metricsink: [{{driver: file, directory: '${{run:logs}}'}}]\nuploader: {{driver: well, address: '{banner}'}}\n"
    )
    words = ("plugins", "check", "--profile", "mine", "--config-path", str(profile))
    result = heron(*words, "--json")
    found = listed(result)
    assert result.returncode == 0, result.stdout
    assert found["heron-uploader-well", "well"]["server"] == "answers"
    assert found["heron-uploader-well", "well"]["server_detail"] == f"Parcels 2.1 at {banner}"
    assert found["heron-packing-roundrobin", "roundrobin"]["server"] == "none"
    assert found["heron-uploader-localfs", "localfs"]["server"] == "not asked"

    with socket.create_server(("127.0.0.1", 0)) as silent:  # it accepts connections and sends nothing
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        result = heron(*words, "--set", f"uploader.address={address}", "--timeout", "0.3")
    assert result.returncode == 2
    assert f"away: package server {address}: timed out; start it" in result.stdout


@pytest.mark.matrix
def test_a_driver_that_hangs_is_left_behind(heron: Heron, plugin: Plugin, tmp_path: Path) -> None:
    """The command ends within its time limit, names the hanging driver, and checks the others."""
    hanging = UPLOADER.replace("host, _, port", "import threading; threading.Event().wait(); host, _, port")
    plugin("heron-uploader-hanging", "uploader", "hanging", hanging)
    profile = tmp_path / "profiles"
    profile.mkdir()
    (profile / "mine.yaml").write_text(
        "scheduler: {driver: local}\nstatemgr: {driver: localfs}\npacking: {driver: roundrobin}\n"
        "metricsink: []\nuploader: {driver: hanging, address: 'a:1'}\n"
    )
    words = ("--profile", "mine", "--config-path", str(profile), "--timeout", "0.2", "--json")
    result = heron("plugins", "check", *words)
    found = listed(result)
    assert result.returncode == 2
    assert "check: not done after 1.2 s" in str(found["heron-uploader-hanging", "hanging"]["server_detail"])
    assert found["heron-statemgr-localfs", "localfs"]["server"] in ("none", "answers")

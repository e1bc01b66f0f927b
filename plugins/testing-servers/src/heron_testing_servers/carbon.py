"""Carbon, the receiver of Graphite, which stores series in whisper files; with readers of its data."""

from __future__ import annotations

import pickle
import socket
import struct
from pathlib import Path

from heron_testing.ports import free_port
from heron_testing_servers.install import installed, python_packages
from heron_testing_servers.server_process import ServerProcess, listens

__all__ = ["FIXTURES", "CarbonServer"]

FIXTURES = ("carbon",)

_REQUIREMENTS = ("carbon==1.1.10", "whisper==1.1.10", "setuptools<81")

_CONF = """\
[cache]
STORAGE_DIR = {folder}/storage
LOCAL_DATA_DIR = {folder}/storage/whisper
WHITELISTS_DIR = {folder}/storage/lists
CONF_DIR = {folder}
LOG_DIR = {folder}/storage/log
PID_DIR = {folder}/storage
USER =
DATABASE = whisper
ENABLE_LOGROTATION = False
ENABLE_UDP_LISTENER = False
LINE_RECEIVER_INTERFACE = 127.0.0.1
LINE_RECEIVER_PORT = {plaintext}
PICKLE_RECEIVER_INTERFACE = 127.0.0.1
PICKLE_RECEIVER_PORT = {pickle}
CACHE_QUERY_INTERFACE = 127.0.0.1
CACHE_QUERY_PORT = {query}
MAX_CACHE_SIZE = inf
MAX_UPDATES_PER_SECOND = 100000
MAX_CREATES_PER_MINUTE = inf
WHISPER_AUTOFLUSH = True
CARBON_METRIC_INTERVAL = 0
ENABLE_TAGS = False
"""
_SCHEMAS = "[default]\npattern = .*\nretentions = 1s:1h\n"
_TIMEOUT_S = 10.0

_HEADER = struct.Struct("!2LfL")  # a whisper file begins with a header, then has the archives, then their points
_ARCHIVE = struct.Struct("!3L")
_POINT = struct.Struct("!Ld")


class CarbonServer(ServerProcess):
    """Keeps one value a second for an hour in `folder`; the data in whisper files survives a kill."""

    def __init__(self, folder: Path) -> None:
        """Install carbon from the package index into the cache if it is absent.

        Raises:
            ServerNotInstalledError: when that fails.
        """
        place = installed("carbon-1.1.10", python_packages(*_REQUIREMENTS))
        self.plaintext = ("127.0.0.1", free_port())
        """The address for lines: host and port."""
        self.pickle = ("127.0.0.1", free_port())
        """The address for pickled messages."""
        self._query_port = free_port()
        self._whisper = folder / "storage" / "whisper"
        (folder / "storage" / "log").mkdir(parents=True)
        ports = {"plaintext": self.plaintext[1], "pickle": self.pickle[1], "query": self._query_port}
        (folder / "carbon.conf").write_text(_CONF.format(folder=folder, **ports), encoding="utf-8")
        (folder / "storage-schemas.conf").write_text(_SCHEMAS, encoding="utf-8")
        program = [str(place / "bin" / "python"), str(place / "bin" / "carbon-cache.py")]
        options = [f"--config={folder / 'carbon.conf'}", "--nodaemon", "--debug", "start"]
        super().__init__([*program, *options], folder / "carbon.log", lambda: all(map(listens, ports.values())))

    def series(self, prefix: str) -> tuple[str, ...]:
        """Return the names of the series below a prefix that have whisper files, ordered."""
        files = (self._whisper / prefix.replace(".", "/")).rglob("*.wsp")
        return tuple(sorted(".".join(path.relative_to(self._whisper).with_suffix("").parts) for path in files))

    def points(self, series: str) -> dict[int, float]:
        """Return the values of a series by second, from its whisper file and from carbon's memory."""
        return {**self.written(series), **self._cached(series)}

    def written(self, series: str) -> dict[int, float]:
        """Return only the values in the whisper file, which survive a kill."""
        path = self._whisper / f"{series.replace('.', '/')}.wsp"
        if not path.exists():
            return {}
        data = path.read_bytes()
        if len(data) < _HEADER.size + _ARCHIVE.size:
            return {}
        offset, step_s, count = _ARCHIVE.unpack_from(data, _HEADER.size)
        end = offset + count * _POINT.size
        if len(data) < end:  # carbon creates a file in several writes
            return {}
        found = dict(_POINT.iter_unpack(data[offset:end]))
        newest = max(found)
        # A slot that carbon has not written yet has time 0: it creates a file before it writes the first value.
        return {at_s: found[at_s] for at_s in sorted(found) if at_s and at_s > newest - step_s * count}

    def _cached(self, series: str) -> dict[int, float]:
        question = pickle.dumps({"type": "cache-query", "metric": series}, protocol=2)
        with socket.create_connection(("127.0.0.1", self._query_port), _TIMEOUT_S) as asked:
            asked.sendall(struct.pack("!L", len(question)) + question)
            with asked.makefile("rb") as answer:
                (length,) = struct.unpack("!L", answer.read(4))
                found = pickle.loads(answer.read(length))  # from the server of the test
        return {int(at_s): float(value) for at_s, value in found["datapoints"]}

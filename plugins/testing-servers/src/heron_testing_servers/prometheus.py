"""A Prometheus that scrapes the tests' servers four times a second."""

from __future__ import annotations

import json
import shutil
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from heron.clock import wall_s
from heron_testing.ports import free_port
from heron_testing.waiting import wait_until
from heron_testing_servers.install import debian_package, installed
from heron_testing_servers.server_process import ServerProcess, answers

__all__ = ["FIXTURES", "PrometheusServer", "Sample"]

FIXTURES = ("prometheus",)

_CONF = """\
global:
  scrape_interval: 250ms
  scrape_timeout: 250ms
scrape_configs:
  - job_name: test
    static_configs:
      - targets: ["127.0.0.1:{port}"]
  - job_name: found
    file_sd_configs:
      - files: ["{targets}/*.json"]
        refresh_interval: 1s
"""
_TIMEOUT_S = 10.0
_SCRAPED_S = 30.0


@dataclass(frozen=True, slots=True)
class Sample:
    """The newest value of one series; its name is the label ``__name__``."""

    labels: dict[str, str]
    value: float


class PrometheusServer(ServerProcess):
    """Keeps its data in `folder`, so scraped data survives a kill."""

    def __init__(self, folder: Path) -> None:
        """Use the prometheus on the PATH, else install Debian's into the cache.

        Raises:
            ServerNotInstalledError: when there is neither.
        """
        self.target_port = free_port()
        """It scrapes this port of the loopback address as job ``test``."""
        self.targets = folder / "targets"
        """It scrapes the targets in JSON files of this folder as job ``found``, some seconds after a file appears."""
        self.targets.mkdir()
        self._url = f"http://127.0.0.1:{(port := free_port())}"
        conf = folder / "prometheus.yml"
        conf.write_text(_CONF.format(port=self.target_port, targets=self.targets), encoding="utf-8")
        options = [f"--config.file={conf}", f"--storage.tsdb.path={folder / 'data'}"]
        command = [_program(), *options, f"--web.listen-address=127.0.0.1:{port}"]
        super().__init__(command, folder / "prometheus.log", lambda: answers(f"{self._url}/-/ready"))

    @property
    def url(self) -> str:
        """Its address."""
        return self._url

    def query(self, expression: str) -> list[Sample]:
        """Return the present value of an expression in its language."""
        words = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"{self._url}/api/v1/query?{words}", timeout=_TIMEOUT_S) as answer:  # noqa: S310  # the server of the test
            found = json.load(answer)["data"]["result"]
        return [Sample(each["metric"], float(each["value"][1])) for each in found]

    def scraped(self) -> list[Sample]:
        """Return all series of the job ``test`` from a scrape after this call; empty while nothing listens there."""
        asked_s = wall_s()
        wait_until(lambda: self._scraped_at_s() > asked_s, _SCRAPED_S, "a scrape")
        return self.query('{job="test"}')

    def _scraped_at_s(self) -> float:
        return max((each.value for each in self.query('timestamp(up{job="test"})')), default=0.0)


def _program() -> str:
    place = shutil.which("prometheus")
    return place or str(installed("prometheus-debian", debian_package("prometheus")) / "usr" / "bin" / "prometheus")

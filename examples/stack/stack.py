"""Starts the stack on this machine: Scribe collectors, Kafka, two pipelines, and the server of answers.

./dev stack                        # until Ctrl-C
./dev stack -- --measure 20        # logs 5,000 lines/s for 20 s, and prints how long a line takes to be in an answer
./dev stack -- --kafka HOST:PORT   # another Kafka than the one that it would start; the topic must exist there
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from page_views import TOPIC
from shop_logs import PAGES, ShopLogs

from heron_connector_scribe import announced
from heron_testing.ports import free_port
from heron_testing_servers.install import ServerNotInstalledError
from heron_testing_servers.kafka import KafkaServer

HERE = Path(__file__).resolve().parent
_READY_S = 180.0
_PROBE_S = 0.02  # how often a line has a page of its own, whose answer is waited for
_END_S = 60.0
_LATE_S = 60.0


def say(text: str) -> None:
    """Tell the user what happens."""
    print(f"stack: {text}", flush=True)


def wait(is_ready: Callable[[], bool], what: str, processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Wait for something.

    Raises:
        SystemExit: when a process has ended, or it takes too long.
    """
    until_s = time.monotonic() + _READY_S
    while not is_ready():
        for each in processes:
            if each.poll() is not None:
                sys.exit(f"stack: a process ended with {each.returncode}: {each.args!r}")
        if time.monotonic() > until_s:
            sys.exit(f"stack: no {what} after {_READY_S:.0f} s")
        time.sleep(0.1)


@contextlib.contextmanager
def kafka(folder: Path, given: str | None) -> Iterator[str]:
    """The address of Kafka, with the topic."""
    if given:
        say(f"Kafka at {given}, topic {TOPIC}")
        yield given
        return
    cache = os.environ.get("HERON_TESTS_CACHE") or "~/.cache/heron-tests"
    say(f"Kafka from Maven, once, into {cache}: about 130 MB; it needs java 17 and mvn")
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # noqa: PLC0415

    try:
        server = KafkaServer(folder / "kafka")
    except ServerNotInstalledError as error:
        sys.exit(f"stack: {error}")
    server.start()
    try:
        admin = AdminClient({"bootstrap.servers": server.address})
        admin.create_topics([NewTopic(TOPIC, 4, 1)])[TOPIC].result(_READY_S)
        say(f"Kafka runs at {server.address}, process {server.pid}")
        yield server.address
    finally:
        server.kill()


@contextlib.contextmanager
def stack(folder: Path, address: str) -> Iterator[tuple[list[tuple[str, int]], str]]:
    """Where the collectors are, and the address of the answers."""
    heron = str(Path(sys.executable).with_name("heron"))
    port, ports = free_port(), f"{free_port()},{free_port()}"
    commands = {
        "collect": [heron, "run", "collect.py", "--", "--kafka", address, "--folder", str(folder), "--ports", ports],
        "count": [heron, "run", "count.py", "--", "--kafka", address],
        "serve": [sys.executable, "serve.py", "--port", str(port)],
    }
    environment = {**os.environ, "HERON__STORE__FOLDER": str(folder / "views")}  # views of this run alone
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for name, command in commands.items():
            with (folder / f"{name}.out").open("wb") as out:
                processes.append(subprocess.Popen(command, cwd=HERE, env=environment, stdout=out, stderr=out))
        collectors = folder / "collectors"
        wait(lambda: collectors.exists() and len(announced(collectors)) == 2, "collectors", processes)
        url = f"http://127.0.0.1:{port}/views"
        wait(lambda: answers(url), "answers", processes)
        yield announced(collectors), url
    finally:
        for each in processes:
            each.send_signal(signal.SIGINT)
        for each in processes:
            try:
                each.wait(_END_S)
            except subprocess.TimeoutExpired:
                each.kill()


def answers(url: str) -> bool:
    """Whether the server answers."""
    with contextlib.suppress(OSError):
        views(url, [PAGES[0]])
        return True
    return False


def views(url: str, pages: Sequence[str]) -> dict[str, int]:
    """The answer about some pages."""
    query = urllib.parse.urlencode({"page": pages}, doseq=True)
    with urllib.request.urlopen(f"{url}?{query}", timeout=_READY_S) as answer:  # noqa: S310  # an own address
        found: dict[str, int] = json.load(answer)["views"]
    return found


def measure(collectors: Sequence[tuple[str, int]], url: str, seconds: float, rate: int) -> None:
    """Log lines, and print how long they take to be in an answer."""
    logs = ShopLogs(collectors)
    say("the first line")
    logs.write("/first")
    wait(lambda: views(url, ["/first"])["/first"] > 0, "answer about the first line", ())
    before = sum(views(url, PAGES).values())
    took, waiting = list[float](), dict[str, float]()
    begin_s = probed_s = time.monotonic()
    written = counted = probes = 0
    while (now_s := time.monotonic()) < begin_s + seconds or waiting:
        if now_s > begin_s + seconds + _LATE_S:
            sys.exit(f"stack: {len(waiting)} lines are in no answer after {_LATE_S:.0f} s")
        while now_s < begin_s + seconds and written < (now_s - begin_s) * rate:
            page = PAGES[written % len(PAGES)]
            if now_s - probed_s >= _PROBE_S:
                page, probed_s, probes = f"/probe-{probes}", now_s, probes + 1
                waiting[page] = time.monotonic()
            else:
                counted += 1
            logs.write(page)
            written += 1
        if waiting:
            for page, count in views(url, list(waiting)).items():
                if count:
                    took.append(time.monotonic() - waiting.pop(page))
        time.sleep(0.005)
    logs.close()
    wait(lambda: sum(views(url, PAGES).values()) - before >= counted, "answer with all lines", ())
    exact = sum(views(url, PAGES).values()) - before == counted
    cuts, per_s = statistics.quantiles(took, n=100), round(written / seconds)
    say(f"{written:,} lines in {seconds:.0f} s ({per_s:,}/s)")
    say("each is counted once" if exact else "they are NOT each counted once")
    say(f"from a line to its answer, {len(took):,} lines: median {cuts[49]:.2f} s, p99 {cuts[98]:.2f} s")
    say(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    if not exact:
        sys.exit(1)


def main(arguments: Sequence[str]) -> None:
    """Parse the command line, and run the stack."""
    parser = argparse.ArgumentParser(prog="stack.py", description="runs Scribe, Kafka, pipelines and a view")
    parser.add_argument("--kafka", help="HOST:PORT of a broker; without it one is started here")
    parser.add_argument("--measure", type=float, metavar="S", help="log lines for S seconds, print times, and end")
    parser.add_argument("--rate", type=int, default=5000, help="lines per second of --measure (default: %(default)s)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="heron-stack-") as made, kafka(Path(made), options.kafka) as address:
        say(f"the pipelines collect.py and count.py start; their output is in {made}")
        with stack(Path(made), address) as (collectors, url):
            places = ", ".join(f"{host}:{port}" for host, port in collectors)
            say(f"Scribe's clients log to {places}, category page-views, lines of the form TIME PAGE")
            say(f"answers: curl '{url}?page=/cart'")
            if options.measure:
                measure(collectors, url, options.measure, options.rate)
                return
            say("Ctrl-C ends it")
            with contextlib.suppress(KeyboardInterrupt):
                signal.pause()


if __name__ == "__main__":
    main(sys.argv[1:])

"""The benchmarks: their conclusions from records, and a quick run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench.against import working_tree
from bench.benches import BENCHES, SPARK
from bench.engine import Engine
from bench.findings import Findings, Pace, Row, read_findings, write_findings
from bench.gate import FLOOR, checks_of
from bench.job import ATLEAST, ATMOST, Job
from bench.latency import percentile
from bench.parts import PART_OF, part_of
from bench.records import BenchError, CountOverTime, Records
from bench.structured_streaming import check_counts, lateness_of
from bench.wire import bytes_per_tuple

from heron.clock import monotonic_s, wall_s

ROOT = Path(__file__).resolve().parents[1]


def test_counts_between_two_records_are_interpolated() -> None:
    """A window begins and ends between two ticks, and its rate must not depend on the position."""
    counts = CountOverTime((10.0, 12.0), (100, 300))
    assert counts.at(11.0) == 200
    assert counts.at(12.0) == 300


def test_a_count_after_the_last_record_is_refused() -> None:
    """Otherwise a bolt that stopped recording would look like a bolt that stopped counting."""
    with pytest.raises(BenchError, match="no count at"):
        CountOverTime((10.0,), (100,)).at(10.5)


@pytest.mark.parametrize(
    ("rounds", "counted", "right"),
    [
        ((2, 1), ({"a": 3}, {"b": 6}), True),
        ((2, 1), ({"a": 3}, {"b": 5}), False),
        ((2, 1), ({"a": 3, "c": 1}, {"b": 6}), False),
        ((), ({},), False),
    ],
    ids=["right", "lost", "invented", "nothing sent"],
)
def test_counts_are_compared_with_what_was_sent(
    tmp_path: Path, rounds: tuple[int, ...], counted: tuple[dict[str, int], ...], right: bool
) -> None:
    """A throughput with wrong counts is meaningless."""
    for component, words in (("words", rounds), ("last", counted)):
        for task, word in enumerate(words):
            (tmp_path / f"{component}-{task}.json").write_text(json.dumps(word))
    records = Records(tmp_path)
    if right:
        assert records.check("words", "last", {"a": 1, "b": 2}) == 9
    else:
        with pytest.raises(BenchError):
            records.check("words", "last", {"a": 1, "b": 2})


def test_a_percentile_is_a_value_that_was_measured() -> None:
    """The function must not interpolate, and the last percentile is the largest value."""
    values = [float(each) for each in range(1, 101)]
    assert (percentile(values, 50), percentile(values, 99), percentile(values, 99.9)) == (50, 99, 100)


def row(bench: str, value: float) -> Row:
    return Row(bench, "tuple", ATMOST, "heron", value, "tuples/s", 1, 0.0)


def test_measuring_one_bench_again_keeps_the_others(tmp_path: Path) -> None:
    """Benches may be from different hours, but all rows of a bench are from the same run."""
    path = tmp_path / "latest.json"
    write_findings(Findings([row("A", 1), row("A", 2), row("B", 3)], {"a": 0.1, "b": 0.2}), path, Pace())
    again = Findings([row("A", 4)], {"a": 0.3})
    write_findings(again, path, Pace(), read_findings(path))
    found = read_findings(path)
    assert found == Findings([row("B", 3), row("A", 4)], {"a": 0.3, "b": 0.2})


def test_figures_of_another_machine_are_not_mixed_in(tmp_path: Path) -> None:
    """Readers would compare rates of two machines."""
    path = tmp_path / "latest.json"
    path.write_text(json.dumps({"machine": {"processor": "abacus"}, "rows": [], "ratios": {}}))
    assert read_findings(path) is None


@pytest.mark.parametrize(
    ("measured", "holds"),
    [(0.5, True), (0.4, True), (0.39, False), (None, False)],
    ids=["above", "at", "below", "none"],
)
def test_a_ratio_below_its_floor_or_not_measured_breaks_the_gate(
    tmp_path: Path, measured: float | None, holds: bool
) -> None:
    """A bound whose ratio is no longer measured must fail."""
    floor = tmp_path / "floor.json"
    floor.write_text(json.dumps({"least": {"speed": 0.4}, "most": {"cost": 2}}))
    ratios = {"cost": 1.0} if measured is None else {"cost": 1.0, "speed": measured}
    speed, cost = checks_of(ratios, floor)
    assert (speed.holds, cost.holds) == (holds, True)
    assert not checks_of({**ratios, "cost": 2.1}, floor)[1].holds


def test_the_floor_has_no_bound_that_nothing_measures() -> None:
    """The committed results hold every ratio, so this finds a misspelt name before the gate does."""
    results = json.loads((ROOT / "bench" / "results" / "latest.json").read_text())
    missing = [each.name for each in checks_of(results["ratios"]) if each.measured is None]
    assert missing == []


def test_a_mode_changes_the_classes_and_the_promise() -> None:
    """An at-least-once figure would be meaningless without acks."""
    job = Job("simplified_word_count")
    config = job.in_mode(ATLEAST).definition().config
    entries = [each.entry for each in job.in_mode(ATLEAST).definition().components]
    assert config["topology.reliability.mode"] == "ATLEAST_ONCE"
    assert all("Acked" in entry for entry in entries)
    assert job.in_mode(ATLEAST).in_mode(ATMOST) == job


def test_unacked_roots_are_an_error(tmp_path: Path) -> None:
    """Counts can be right while acks are lost."""
    job = Job("const_spout_null_bolt")
    (tmp_path / "spout-0.json").write_text("1")
    (tmp_path / "last-0.json").write_text(json.dumps({"count": 5000}))
    report = {"spout": {"emitted": 5000, "acked": 4999}, "last": {"executed": 5000}}
    assert job.check(Records(tmp_path), report) == 5000
    with pytest.raises(BenchError, match="4999 of 5000 roots"):
        job.in_mode(ATLEAST).check(Records(tmp_path), report)


def test_bytes_per_tuple_are_those_up_to_the_last_report_in_time(tmp_path: Path) -> None:
    """A later report would make the earlier tuples look heavier."""
    ahead_s = wall_s() - monotonic_s()
    reports = tmp_path / "metrics-1.jsonl"
    lines = [(ahead_s + at_s, process, size) for at_s, process, size in ((1, "stmgr", 50), (2, "stmgr", 200))]
    lines += [(ahead_s + 1.5, "words-1", 7), (ahead_s + 9, "stmgr", 9000)]
    reports.write_text("".join(_report(*line) for line in lines))
    assert bytes_per_tuple([reports], 3, lambda at_s: 10 * round(at_s)) == 10
    with pytest.raises(BenchError, match="not reported in time"):
        bytes_per_tuple([reports], 0.5, lambda _: 1)


def _report(at_s: float, process: str, size: int) -> str:
    metrics = [{"name": "bytes-from-instances", "value": size}, {"name": "frames-from-instances", "value": 3}]
    return json.dumps({"at_s": at_s, "source": {"process": process}, "metrics": metrics}) + "\n"


def test_the_parts_of_a_profile_name_files_that_exist() -> None:
    """Otherwise the time of a renamed module would count as `other`."""
    sources = {path.name for path in (ROOT / "heron-core" / "src" / "heron").rglob("*.py")}
    assert set(PART_OF) <= sources
    assert part_of("/src/heron/stmgr/ledger.py", "Ledger.update") == "ledger"
    assert part_of("/run/c1/package/simplified_word_count.py", "WordSpout.next_tuple") == "user code"
    assert part_of("<string>", "make.<locals>.emit") == "emit"
    assert part_of("/src/heron/instance/codec/serializers.py", "PickleSerializer.decode") == "decode"
    assert part_of("/src/heron/instance/codec/batch_codec.py", "encode_rows") == "encode"
    assert part_of("/src/heron/instance/acks/pending_roots.py", "RootCallbacks._ack") == "complete"
    assert part_of("/src/heron/instance/acks/pending_roots.py", "PendingRoots.open") == "root bookkeeping"


def test_the_engine_of_another_tree_is_run_from_its_own_environment() -> None:
    """Otherwise both sides of a comparison would run the installed engine."""
    other = Engine(settings=("a=1",)).of_tree(Path("/other/tree"))
    assert other.command == "/other/tree/.venv/bin/heron"
    assert other.settings == ("a=1",)
    assert Path(Engine().command).is_file()
    assert Engine().environment(Path("/home/nobody"))["HOME"] == "/home/nobody"


def test_words_of_a_batch_are_late_until_its_end() -> None:
    """Spark gives the counts of a batch at once, so its oldest word has waited the longest."""
    late = lateness_of([(10.5, 10.0), (11.5, 11.0), (12.5, 12.5)], rate=2)
    assert sorted(late) == [(10.5, 1.0), (11.0, 0.5), (11.5, 1.0), (12.0, 0.5), (12.5, 0.0)]


@pytest.mark.parametrize(
    ("counts", "words", "right"),
    [
        ({f"word{number}": 2 for number in range(5_000)}, 10_000, True),
        ({f"word{number}": 2 for number in range(4_999)}, 10_000, False),
        ({f"word{number}": 2 for number in range(5_001)}, 10_000, False),
        ({f"word{number}": 2 for number in range(5_000)}, 15_000, False),
        ({f"word{number}": 2 for number in range(5_000)}, 10_001, False),
    ],
    ids=["right", "lost", "invented", "batch lost", "uneven"],
)
def test_counts_of_structured_streaming_are_compared_with_its_batches(
    counts: dict[str, int], words: int, right: bool
) -> None:
    """Its rate comes from the number of batches, which says nothing about the counts."""
    if right:
        check_counts(counts, words)
    else:
        with pytest.raises(BenchError, match="counts differ"):
            check_counts(counts, words)


def test_benches_on_spark_run_only_when_they_are_named() -> None:
    """Neither the gate nor a call without names may need Java."""
    assert not {each.name for each in SPARK} & {each.name for each in BENCHES}
    assert "spark" not in FLOOR.read_text(encoding="utf-8")


def test_an_unknown_revision_is_named() -> None:
    """A misspelt revision is the most likely mistake."""
    with pytest.raises(BenchError, match="no-such-revision"), working_tree("no-such-revision"):
        pass


@pytest.mark.matrix
def test_a_quick_bench_counts_right_and_writes_its_rows(tmp_path: Path) -> None:
    """It uses real processes and the null engine. The speed of this run means nothing."""
    out = tmp_path / "results.json"
    command = [sys.executable, "-m", "bench", "SimplifiedWordCount", "--quick", "--out", str(out)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    document = json.loads(out.read_text())
    ratios = {"atmost.vs_null", "atleast.vs_null", "acked_vs_unacked", "atleast.link_bytes_per_tuple"}
    assert all(document["ratios"][f"wordcount.tuple.{name}"] > 0 for name in ratios)
    assert {"heron", "null engine"} <= {row["subject"] for row in document["rows"]}


_MECHANISMS = """
import zmq
from heron.ipc.guarded_hub import open_guarded_hub
from heron.ipc.keys import ClientKind, new_keys
from heron.ipc.socket import SocketContext

sockets, keys = SocketContext(max_frame_bytes=-1), new_keys()
hub = open_guarded_hub(sockets, "127.0.0.1", keys.listening_to(ClientKind.MEMBER))
peer = sockets.client_of(hub.endpoint, b"c1-0-1", keys=keys.connecting_as(ClientKind.MEMBER))
print(hub.raw.getsockopt(zmq.MECHANISM), peer.raw.getsockopt(zmq.MECHANISM))
sockets.close()
"""


@pytest.mark.parametrize(("folders", "mechanism"), [([], 2), ([ROOT / "bench" / "plain_links"], 0)])
def test_the_baseline_of_encryption_is_unencrypted(folders: list[Path], mechanism: int) -> None:
    """If both sides were encrypted, the ratio would always be 1."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    words = [sys.executable, "-c", _MECHANISMS, "heron.stmgr.main"]
    found = subprocess.run(words, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.split() == [str(mechanism)] * 2

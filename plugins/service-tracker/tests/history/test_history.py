"""History: a bounded file, what is read from it, and a disk that is full."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import httpx
import msgspec
import pytest

from heron_cli.client import MetricsRow, TopologyEntry, TopologyStatus
from heron_service_tracker.answers.answers import HistoryAnswer
from heron_service_tracker.history import recorder as recorder_module
from heron_service_tracker.history.buckets import OpenBuckets
from heron_service_tracker.history.history_file import HistoryFile, StoredEvent
from heron_service_tracker.history.recorder import Recorder
from heron_service_tracker.history.samples import Sample
from heron_service_tracker.history.series import SeriesGroup
from heron_service_tracker.http.access import Access
from heron_service_tracker.http.address import Address
from heron_service_tracker.http.application import application
from heron_service_tracker.observed.observed import ObservedEvent
from heron_service_tracker.observed.task_figures import figures_of_tasks
from heron_service_tracker.watches.observations import Observations
from heron_testing.fake_clock import FakeClock
from heron_testing.faults import full_files

EMITTED = SeriesGroup("near", "words", "lines", 0, ("emit-count",))
NOW = 1_700_000_000
MIB = 1024 * 1024
KEY = ("near", "words", "lines", 0, "emit-count")

MakeStatus = Callable[..., TopologyStatus]
MakeEntry = Callable[..., TopologyEntry]


def fill(file: HistoryFile, start: int, seconds: int, increment: float = 10.0) -> None:
    """Write an increment a second."""
    buckets = OpenBuckets()
    for second in range(seconds):
        buckets.add([Sample(EMITTED, (increment,), 1.0)], start + second)
    file.write(buckets.take(None))


def test_points_are_rates_and_steps_join_buckets(tmp_path: Path) -> None:
    """A point is the mean over the seconds that were observed, so a hole does not lower it."""
    file = HistoryFile(tmp_path / "h.db", 64 * MIB)
    fill(file, NOW, 10)
    fill(file, NOW + 10, 5, increment=30.0)
    (found,) = file.read(KEY, 10, 1, NOW, NOW + 20)
    assert [(each.at_s - NOW, each.value, each.most, each.total) for each in found.points] == [
        (0, 10.0, 10.0, 100.0),
        (10, 30.0, 30.0, 150.0),
    ]
    file.close()


def test_a_bucket_that_is_written_twice_is_added_up(tmp_path: Path) -> None:
    """A tracker that restarts within a minute continues the same bucket."""
    for _ in range(2):
        file = HistoryFile(tmp_path / "h.db", 64 * MIB)
        fill(file, NOW, 10)
        file.close()
    (found,) = HistoryFile(tmp_path / "h.db", 64 * MIB).read(KEY, 60, 60, NOW - 60, NOW + 60)
    assert [(each.value, each.total) for each in found.points] == [(10.0, 200.0)]


def test_old_points_and_series_without_points_are_removed(tmp_path: Path) -> None:
    """Each resolution has its own time."""
    file = HistoryFile(tmp_path / "h.db", 64 * MIB)
    fill(file, NOW, 60)
    file.prune(NOW + 3600)
    assert file.read(KEY, 1, 1, NOW, NOW + 60)[0].points == ()
    assert file.read(KEY, 10, 10, NOW, NOW + 60)[0].points != ()
    file.prune(NOW + 15 * 86400)
    assert file.read(KEY, 60, 60, NOW - 60, NOW + 60) == []
    fill(file, NOW + 15 * 86400, 1)  # a series that was removed begins again
    assert len(file.read(KEY, 1, 1, NOW, NOW + 16 * 86400)) == 1
    file.close()


def test_the_file_stays_below_its_bound(tmp_path: Path) -> None:
    """The oldest points make room, and new ones continue to be written."""
    bound = MIB // 2
    file = HistoryFile(tmp_path / "h.db", bound)
    for hour in range(30):
        at = NOW + hour * 3600
        buckets = OpenBuckets()
        for series in range(20):
            for minute in range(60):
                sample = Sample(EMITTED._replace(task_id=series + 1), (1.0,), 1.0)
                buckets.add([sample], at + minute * 60)
        file.write(buckets.take(None))
        file.prune(at + 3600)
    assert (tmp_path / "h.db").stat().st_size <= bound
    (found,) = file.read(("near", "words", "lines", 1, ""), 60, 60, NOW - 60, NOW + 31 * 3600)
    assert found.points[0].at_s > NOW + 3600
    assert sum(each.at_s >= NOW + 29 * 3600 - 60 for each in found.points) == 60
    file.close()


def test_old_metrics_of_the_engine_make_room_first_and_are_read_by_name(tmp_path: Path) -> None:
    """They are many, and pages show the others. Those of the last day stay as long as those of the others."""
    file = HistoryFile(tmp_path / "h.db", MIB)
    for hour in range(72):
        at = NOW + hour * 3600
        buckets = OpenBuckets()
        for metric in ("busy", *(f"engine/use-{number}" for number in range(9))):
            group = EMITTED._replace(task_id=1, metrics=(metric,))
            for minute in range(60):
                buckets.add([Sample(group, (1 / 3,), 1.0)], at + minute * 60)
        file.write(buckets.take(None))
        file.prune(at + 3600)
    times = 60, 60, NOW - 60, NOW + 73 * 3600
    (busy,) = file.read(("near", "words", "", 1, ""), *times)
    (of_engine,) = file.read(("near", "words", "", 1, "engine/use-3"), *times)
    assert (busy.series.metric, of_engine.series.metric) == ("busy", "engine/use-3")
    assert len(busy.points) == 72 * 60
    assert 24 * 60 <= len(of_engine.points) < 72 * 60
    assert of_engine.points[-1].at_s == busy.points[-1].at_s
    file.close()


def test_events_of_a_crash_loop_leave_room_for_points(tmp_path: Path) -> None:
    """A message may have thousands of characters, and a topology may raise one for ever."""
    bound = MIB
    file = HistoryFile(tmp_path / "h.db", bound)
    for minute in range(100):
        at = NOW + minute * 60
        fill(file, at, 60)
        error = ObservedEvent(1, float(at), "error", "count", "x" * 4000)
        file.write(
            {}, [StoredEvent(("near", "words"), replace(error, text=f"{number} {error.text}")) for number in range(100)]
        )
        file.prune(at + 60)
    assert (tmp_path / "h.db").stat().st_size <= bound
    newest = file.read_events("near", "words", NOW, NOW + 10**6)[-1]
    assert newest.text == f"99 {'x' * 497}"
    (found,) = file.read(KEY, 60, 60, NOW, NOW + 10**6)
    assert len(found.points) == 100
    file.close()


def test_a_full_disk_stops_only_the_history(tmp_path: Path, observations: Observations, clock: FakeClock) -> None:
    """The answer says why; when there is room again, recording goes on."""
    recorder = Recorder(tmp_path, 64 * MIB, clock, gap_s=5.0)
    record(recorder, observations, clock, 3)
    recorder.flush()
    assert recorder.error == ""
    with full_files(4096):
        record(recorder, observations, clock, 200)
        recorder.flush()
        assert "history.db" in recorder.error
    record(recorder, observations, clock, 3)
    recorder.flush(everything=True)
    assert recorder.error == ""


def test_topologies_that_are_gone_are_forgotten(
    tmp_path: Path, observations: Observations, clock: FakeClock, make_entry: MakeEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tracker runs for months, and each run may have a new name. Those that are seen stay."""
    monkeypatch.setattr(recorder_module, "_MOST_PLACES", 2)
    recorder = Recorder(tmp_path, 64 * MIB, clock, gap_s=5.0)
    topology = observations.topology("near", "words")
    for name in ("a", "b", "c"):
        recorder.take(topology)
        recorder.take(replace(topology, entry=make_entry(name)))
    assert {name for _, name in recorder._seen} == {"words", "c"}


def test_what_nobody_reads_is_written_seldom_and_a_reader_has_it_at_once(
    tmp_path: Path, observations: Observations, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then it is written often for a while: a page asks again and again."""
    monkeypatch.setattr(recorder_module, "_UNREAD_FLUSH_S", 3600.0)
    monkeypatch.setattr(recorder_module, "_FLUSH_S", 0.01)
    monkeypatch.setattr(recorder_module, "_WAIT_S", 60.0)
    flushes = threading.Semaphore(0)

    class Counted(Recorder):
        def flush(self, *, everything: bool = False) -> None:
            super().flush(everything=everything)
            flushes.release()

    recorder = Counted(tmp_path, 64 * MIB, clock, gap_s=5.0)
    recorder.start()
    record(recorder, observations, clock, 5)
    assert not (tmp_path / "history.db").exists()
    (found,) = recorder.for_reader().read(KEY, 1, 1, NOW - 60, NOW + 60)
    assert len(found.points) == 3
    assert all(flushes.acquire(timeout=60.0) for _ in range(5))
    recorder.stop()


def test_a_second_tracker_does_not_record_into_the_same_folder(tmp_path: Path, clock: FakeClock) -> None:
    """Both would add to the same buckets, and every rate would be double."""
    first, second = (Recorder(tmp_path, 64 * MIB, clock, gap_s=5.0) for _ in range(2))
    first.flush()
    second.flush()
    assert first.error == ""
    assert "another tracker records there" in second.error


def test_a_folder_that_cannot_be_used_is_an_error_of_the_history(tmp_path: Path, clock: FakeClock) -> None:
    """The tracker itself goes on."""
    (tmp_path / "file").write_text("no folder")
    recorder = Recorder(tmp_path / "file", 64 * MIB, clock, gap_s=5.0)
    recorder.flush()
    assert str(tmp_path / "file") in recorder.error


def record(recorder: Recorder, observations: Observations, clock: FakeClock, seconds: int) -> None:
    """Observe a topology that emits and executes ten tuples a second."""
    topology = observations.topology("near", "words")
    for _ in range(seconds):
        clock.advance(1.0)
        emitted = int(clock.wall_s() - NOW) * 10
        status = topology.status
        assert status is not None
        spout = msgspec.structs.replace(status.components[0], emitted=emitted)
        row = MetricsRow("lines", 1, "lines-1", "emit-count", "counter", "tuples", float(emitted))
        recorder.take(
            replace(
                topology,
                status=replace(status, components=(spout,)),
                figures=figures_of_tasks([row]),
                observed_at_s=clock.monotonic_s(),
                figures_at_s=clock.monotonic_s(),
            )
        )


def get(observations: Observations, recorder: Recorder | None, query: str, topology: str = "words") -> httpx.Response:
    """Ask for the history."""

    async def ask() -> httpx.Response:
        app = application(observations, Access(Address("127.0.0.1", 1)), asyncio.Event(), recorder)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost") as client:
            return await client.get(f"/api/v1/clusters/near/topologies/{topology}/history{query}")

    return asyncio.run(ask())


def test_the_history_of_a_topology_outlives_it(tmp_path: Path, observations: Observations, clock: FakeClock) -> None:
    """Another tracker, later, without the topology, shows the same points."""
    recorder = Recorder(tmp_path, 64 * MIB, clock, gap_s=5.0)
    record(recorder, observations, clock, 120)
    recorder.flush(everything=True)
    recorder.file.close()
    later = Observations(("near",), clock)
    reader = Recorder(tmp_path, 64 * MIB, clock, gap_s=5.0)
    found = get(later, reader, "?metric=emit-count")
    answer = msgspec.json.decode(found.content, type=HistoryAnswer)
    (series,) = answer.series
    assert (answer.step_s, len(series.points), {each.value for each in series.points}) == (1, 119, {10.0})
    task = msgspec.json.decode(get(later, reader, "?metric=emit-count&task=1").content, type=HistoryAnswer)
    assert {each.value for each in task.series[0].points} == {10.0}
    assert task.step_s == 60
    tasks = msgspec.json.decode(
        get(later, reader, "?metric=emit-count&task=2&task=1&task=1").content, type=HistoryAnswer
    )
    assert [(each.task_id, each.metric) for each in tasks.series] == [(1, "emit-count")]
    many = get(later, reader, "?" + "&".join(f"task={each}" for each in range(1, 18)))
    assert (many.status_code, many.json()["detail"]) == (
        400,
        "parameter 'task' names 17 tasks, more than 16; ask for fewer at once",
    )
    assert get(later, reader, "", topology="other").status_code == 404


def test_a_history_that_is_damaged_stops_nothing_else(
    tmp_path: Path, observations: Observations, clock: FakeClock
) -> None:
    """Its path says why; a file of an older tracker has no events, and is none such."""
    recorder = Recorder(tmp_path, 64 * MIB, clock, gap_s=5.0)
    record(recorder, observations, clock, 3)
    recorder.flush(everything=True)
    recorder.file.close()
    with closing(sqlite3.connect(tmp_path / "history.db")) as file, file:
        file.execute("drop table events")
    assert get(observations, recorder, "").status_code == 200
    (tmp_path / "history.db").write_bytes(b"no database" * 1000)
    found = get(observations, recorder, "")
    assert (found.status_code, "history.db" in found.json()["detail"]) == (503, True)
    record(recorder, observations, clock, 3)
    recorder.flush(everything=True)
    assert "history.db" in recorder.error


def test_events_outlive_the_tracker_and_are_stored_once(
    tmp_path: Path, observations: Observations, clock: FakeClock, make_status: MakeStatus
) -> None:
    """They are marked on charts of the last days. Another run of the name counts its events from one again."""
    recorder = Recorder(tmp_path, 64 * MIB, clock, gap_s=5.0)
    observations.on_status = recorder.take
    for state in ("running", "paused", "paused"):
        observations.put_status("near", make_status(state=state), None)
        clock.advance(1.0)
    recorder.flush()
    reader = Recorder(tmp_path, 64 * MIB, clock, gap_s=5.0)
    found = msgspec.json.decode(get(observations, reader, "").content, type=HistoryAnswer).events
    assert [(each.kind, each.text) for each in found] == [
        ("topology-seen", "run words-1 is running"),
        ("state-changed", "from running to paused"),
    ]
    other = replace(observations.topology("near", "words").entry, id="words-2")
    observations.put_list("near", [other])
    observations.put_status("near", replace(make_status(), topology_id="words-2"), None)
    recorder.flush()
    found = msgspec.json.decode(get(observations, reader, "").content, type=HistoryAnswer).events
    assert [each.text for each in found][2:] == ["run words-2 is running"]
    recorder.file.prune(clock.wall_s() + 15 * 86400)
    assert msgspec.json.decode(get(observations, reader, "").content, type=HistoryAnswer).events == ()


@pytest.mark.parametrize(
    ("query", "code", "detail"),
    [
        ("?metric=emits", 400, "'emits' is unknown; known: emit-count"),
        ("?start=10&end=5", 400, "are not 1 to 2000 points"),
        ("?start=0&end=99999999999&step=60", 400, "are not 1 to 2000 points"),
        ("?step=0", 400, "from 1 to 86400"),
        ("?start=-1", 400, "from 0"),
    ],
)
def test_a_history_that_cannot_be_shown_is_refused(
    tmp_path: Path, observations: Observations, clock: FakeClock, query: str, code: int, detail: str
) -> None:
    """The message has the limit."""
    response = get(observations, Recorder(tmp_path, 64 * MIB, clock, gap_s=5.0), query)
    assert response.status_code == code
    assert detail in response.json()["detail"]


def test_a_tracker_without_a_history_says_so(observations: Observations) -> None:
    """An empty history would claim that nothing happened."""
    response = get(observations, None, "")
    assert (response.status_code, "--without-history" in response.json()["detail"]) == (503, True)

"""The alignment of a bolt's channels: a snapshot has exactly the data before its markers, in any interleaving."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from heron.instance.input.channel_alignment import ChannelAlignment, Verdict

LIMIT_BYTES = 1_000_000
CHANNELS = (1, 2, 3)
LAST = 4
"""The newest checkpoint; every channel sends its marker."""


@dataclass(frozen=True, slots=True)
class Item:
    """A segment: the marker of a checkpoint, or data (`marker` 0) that was sent under a plan version."""

    source: int
    position: int
    version: int
    marker: int = 0


@dataclass
class Receiver:
    """A bolt around the real alignment, as `BoltRunner._process_frame` and `BoltRunner._align` use it."""

    alignment: ChannelAlignment = field(default_factory=lambda: ChannelAlignment(LIMIT_BYTES))
    version: int = 1
    since: int = 1
    items: dict[bytes, Item] = field(default_factory=dict)
    processed: list[Item] = field(default_factory=list)
    snapshots: dict[int, list[Item]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.alignment.restart(frozenset(CHANNELS), 0)

    def arrive(self, item: Item) -> None:
        """A segment arrives."""
        segment = f"{item.source} {item.position}".encode()
        self.items[segment] = item
        if self.alignment.waits():
            self.alignment.queue(segment)
        else:
            self.align(segment)

    def read(self, most: int = 10_000) -> None:
        """Read parked segments that are ready."""
        while most > 0 and (segment := self.alignment.take_ready()) is not None:
            self.align(segment)
            most -= 1

    def align(self, segment: bytes) -> None:
        """A segment gets its verdict."""
        item = self.items[segment]
        verdict = self.alignment.verdict(item.source, item.version, self.since, self.version)
        if verdict is Verdict.PARK:
            assert not self.alignment.park(segment)
        elif verdict is Verdict.PROCESS and not item.marker:
            self.processed.append(item)
        elif verdict is Verdict.PROCESS:
            self.alignment.mark(item.source, item.marker, 0.0)
            self.save_if_aligned()

    def save_if_aligned(self) -> None:
        """Take the snapshot when the markers of all channels have come."""
        if number := self.alignment.aligned():
            self.snapshots[number] = list(self.processed)
            self.alignment.finish(number, 0.0)

    def take_plan(self, version: int) -> None:
        """A newer plan, as `BoltRunner._follow_checkpoints` takes it."""
        self.version = version
        self.alignment.open()
        self.save_if_aligned()

    def restore(self, version: int, number: int) -> None:
        """A restore, as `BoltRunner._restart_alignment` takes it."""
        self.version = self.since = version
        self.processed, self.snapshots = [], {}
        self.alignment.restart(frozenset(CHANNELS), number)


@st.composite
def channels(draw: st.DrawFn) -> dict[int, list[Item]]:
    """What each channel sends: any of the markers up to the last one, which every channel sends, and data between."""
    found: dict[int, list[Item]] = {}
    for source in CHANNELS:
        sent = [*sorted(draw(st.sets(st.integers(1, LAST - 1)))), LAST]
        items: list[Item] = []
        version = 1
        for number in sent:
            for _ in range(draw(st.integers(0, 3))):
                version = min(3, version + draw(st.integers(0, 1)))
                items.append(Item(source, len(items), version))
            items.append(Item(source, len(items), version, number))
        items.append(Item(source, len(items), version))
        found[source] = items
    return found


def before(items: list[Item], number: int) -> list[Item]:
    """The data of a channel before a marker."""
    at = next(each.position for each in items if each.marker == number)
    return [each for each in items[:at] if not each.marker]


@given(channels(), st.data())
def test_each_snapshot_has_the_data_before_its_markers(sent: dict[int, list[Item]], data: st.DataObject) -> None:
    """Any interleaving, with plans that arrive late and markers of checkpoints that some channels do not take part in.

    Data keeps its order, and when all has arrived nothing is parked.
    """
    receiver = Receiver()
    waiting = {source: list(items) for source, items in sent.items()}
    while any(waiting.values()):
        receiver.arrive(waiting[data.draw(st.sampled_from([each for each in CHANNELS if waiting[each]]))].pop(0))
        if data.draw(st.booleans()):
            receiver.read(data.draw(st.integers(0, 3)))
        if receiver.version < 3 and data.draw(st.integers(0, 9)) == 0:
            receiver.take_plan(receiver.version + 1)
    receiver.read()
    receiver.take_plan(3)
    receiver.read()
    assert receiver.alignment.parked_bytes == 0
    assert LAST in receiver.snapshots
    for source, items in sent.items():
        assert [each for each in receiver.processed if each.source == source] == [e for e in items if not e.marker]
        for number, snapshot in receiver.snapshots.items():
            assert [each for each in snapshot if each.source == source] == before(items, number)


@given(channels(), st.data())
def test_a_restore_drops_what_was_sent_before_it(sent: dict[int, list[Item]], data: st.DataObject) -> None:
    """Also what is parked, and markers of abandoned checkpoints. Then the channels are open."""
    receiver = Receiver(version=3)
    waiting = {source: list(items) for source, items in sent.items()}
    for _ in range(data.draw(st.integers(0, 12))):
        if present := [each for each in CHANNELS if waiting[each]]:
            receiver.arrive(waiting[data.draw(st.sampled_from(present))].pop(0))
    receiver.restore(4, LAST)
    rest = [each for items in waiting.values() for each in items]
    again = [Item(source, 100 + position, 4) for source in CHANNELS for position in range(2)]
    for each in rest + again:
        receiver.arrive(each)
    receiver.read()
    assert receiver.processed == again
    assert receiver.alignment.parked_bytes == 0


def test_a_late_marker_of_an_abandoned_checkpoint_closes_no_channel() -> None:
    """Its channel would wait for its next marker, which would be parked: no checkpoint would ever be aligned again."""
    receiver = Receiver()
    receiver.arrive(Item(1, 0, 1, marker=2))
    receiver.arrive(Item(2, 0, 1, marker=1))
    receiver.arrive(Item(2, 1, 1))
    assert receiver.processed == [Item(2, 1, 1)]
    receiver.arrive(Item(2, 2, 1, marker=2))
    receiver.arrive(Item(3, 0, 1, marker=2))
    assert receiver.snapshots == {2: [Item(2, 1, 1)]}


def test_what_was_parked_for_an_abandoned_checkpoint_is_read() -> None:
    """The first marker of the next checkpoint ends the wait; the parked marker of it counts too."""
    receiver = Receiver()
    for each in (Item(1, 0, 1, marker=1), Item(1, 1, 1), Item(1, 2, 1, marker=2), Item(1, 3, 1)):
        receiver.arrive(each)
    assert receiver.processed == []
    receiver.arrive(Item(2, 0, 1, marker=2))
    receiver.read()
    assert receiver.processed == [Item(1, 1, 1)]
    receiver.arrive(Item(3, 0, 1, marker=2))
    receiver.read()
    assert receiver.snapshots == {2: [Item(1, 1, 1)]}
    assert receiver.processed == [Item(1, 1, 1), Item(1, 3, 1)]


def test_the_limit_counts_what_is_parked_for_a_checkpoint() -> None:
    """Giving the checkpoint up opens the channels. Data that waits for a plan alone has no limit."""
    alignment = ChannelAlignment(10)
    alignment.restart(frozenset(CHANNELS), 0)
    assert not alignment.park(b"x" * 11), "no checkpoint is under way"
    alignment.open()
    assert alignment.take_ready() == b"x" * 11
    alignment.mark(1, 1, now_s=5.0)
    assert not alignment.park(b"x" * 10)
    assert alignment.park(b"x")
    assert alignment.finish(1, now_s=7.5) == 2.5
    assert alignment.verdict(1, 1, 0, 1) is Verdict.PROCESS
    assert [alignment.take_ready(), alignment.take_ready(), alignment.take_ready()] == [b"x" * 10, b"x", None]
    assert alignment.parked_bytes == 0


def test_a_task_upstream_that_leaves_the_plan_is_not_waited_for() -> None:
    """Its marker will not come."""
    receiver = Receiver()
    receiver.arrive(Item(1, 0, 1, marker=1))
    receiver.arrive(Item(2, 0, 1, marker=1))
    receiver.alignment.set_upstream(frozenset({1, 2}))
    receiver.take_plan(2)
    assert 1 in receiver.snapshots

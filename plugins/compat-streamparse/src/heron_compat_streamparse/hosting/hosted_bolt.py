"""The bolt of Heron that owns an author's bolt, and carries out its emits, acks and fails.

At least once, a received tuple is in `_open` by its id until the author's bolt has settled it. At most once, acks have
no effect, and anchors are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from heron.api import Bolt, TopologyContext, TopologyReliabilityMode, Tuple
from heron.api.api_constants import TOPOLOGY_RELIABILITY_MODE, TOPOLOGY_TICK_TUPLE_FREQ_SECS
from heron.api.config import setting
from heron.api.tuple import TupleHelper
from heron.author_text import short_text
from heron.errors import EmitError
from heron_compat_streamparse.hosting import tuples
from heron_compat_streamparse.hosting.author import AuthorBolt
from heron_compat_streamparse.hosting.emitted_values import emitted_values
from heron_compat_streamparse.hosting.hosted_component import HostedComponent, author_place
from heron_compat_streamparse.hosting.reported_metrics import ReportedMetrics
from heron_compat_streamparse.hosting.storm_context import FIELDS

__all__ = ["HostedBolt"]

_TICK_ID = TupleHelper.TICK_TUPLE_ID


class HostedBolt(Bolt):
    """Owns an `AuthorBolt`. Each class of an author has a subclass of this one, whose name is that of the author's."""

    author_class: ClassVar[type[AuthorBolt]]

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Make and initialise the author's bolt."""
        hosted = HostedComponent.of_config(config)
        self._tracks = setting(config, TOPOLOGY_RELIABILITY_MODE) == TopologyReliabilityMode.ATLEAST_ONCE
        self._open: dict[str, Tuple] = {}
        self._last_id = 0
        self._now: tuple[str, Tuple] | None = None
        self._fields: Mapping[str, Mapping[str, Sequence[str]]] = hosted.context[FIELDS]
        self._makers: dict[type[Tuple], Callable[[str, tuple[object, ...]], tuples.Tuple]] = {}
        tick = tuples.tuple_maker(TupleHelper.TICK_SOURCE_COMPONENT, _TICK_ID, -1, ["rate_secs"])
        self._tick = tick(_TICK_ID, (config.get(TOPOLOGY_TICK_TUPLE_FREQ_SECS),))
        self._metrics = ReportedMetrics(context)
        self.author: AuthorBolt = self.author_class()
        self.author_place = author_place(self.author)
        self.author._host = self
        hosted.prepare(self.author, config, context)

    def process(self, tup: Tuple) -> None:
        """Give the author's bolt a tuple."""
        make = self._makers.get(type(tup)) or self._maker(tup)
        self._last_id += 1
        tup_id = str(self._last_id)
        if self._tracks:
            self._open[tup_id] = tup
        else:
            self._now = (tup_id, tup)
        try:
            self.author._take(make(tup_id, tup.values))
        except Exception as error:
            if self.author._take_failure():
                self._open.pop(tup_id, None)
                raise  # the engine fails the tuple, and shows the error with it
            self.report_error(error)

    def process_tick(self, tup: Tuple) -> None:
        """Give the author's bolt a tick."""
        self._guarded(lambda: self.author._take_tick(self._tick))

    def finish(self) -> None:
        """Let the author's bolt process what it has collected; an exception ends one batch, and the others follow."""
        left = self.author._batch_count()
        self._guarded(self.author._take_end)
        while 0 < (now := self.author._batch_count()) < left:
            left = now
            self._guarded(self.author._take_end)

    def send(
        self,
        values: Sequence[object],
        stream: str,
        anchors: Iterable[tuples.Tuple | str],
        direct_task: int | None,
        need_task_ids: bool,
    ) -> list[int] | None:
        """`BoltHost.send`.

        Raises:
            EmitError: as `heron.api.BaseBolt.emit`; also when an anchor is not an open tuple.
        """
        anchored: list[Tuple] | None = None
        if self._tracks:
            anchored = []
            for each in anchors:
                anchor_id = each.id if isinstance(each, tuples.Tuple) else each
                if (tup := self._open.get(anchor_id)) is not None:
                    anchored.append(tup)
                elif anchor_id != _TICK_ID:
                    shown = short_text(anchor_id)
                    msg = f"emit anchored to the tuple {shown}, which is acked or failed; emit before the ack"
                    raise EmitError(msg)
        return self.emit(emitted_values(values), stream, anchored, direct_task, need_task_ids)

    def settle_ack(self, tup_id: str) -> None:
        """`BoltHost.settle_ack`."""
        if (tup := self._open.pop(tup_id, None)) is not None:
            self.ack(tup)

    def settle_fail(self, tup_id: str) -> None:
        """`BoltHost.settle_fail`."""
        if (tup := self._open.pop(tup_id, None)) is not None:
            self.fail(tup)
        elif self._now is not None and self._now[0] == tup_id:
            self.fail(self._now[1])  # at most once; it is only counted

    def set_metric(self, name: str, value: object) -> None:
        """`BoltHost.set_metric`."""
        self._metrics.set(name, value)

    def _maker(self, tup: Tuple) -> Callable[[str, tuple[object, ...]], tuples.Tuple]:
        fields = self._fields.get(tup.component, {}).get(tup.stream)
        make = self._makers[type(tup)] = tuples.tuple_maker(tup.component, tup.stream, tup.task, fields)
        return make

    def _guarded(self, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception as error:
            self.author._take_failure()
            self.report_error(error)

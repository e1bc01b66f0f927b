"""What a bolt emits in `finish`: roots of its own, emitted again until their trees are complete (design D15)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import cast

from heron.api.bolt import Bolt
from heron.api.definition import DEFAULT_STREAM, StreamDefinition
from heron.api.tuple import Tuple
from heron.clock import monotonic_s
from heron.instance.data_queue import RootsSettled
from heron.instance.emitter import BoltEmitter
from heron.instance.out_stream import OutStream, StreamOrigin, StreamRoutes
from heron.instance.root_book import RootBook
from heron.instance.root_settler import RootSettler
from heron.instance.task import StreamMaker, Task
from heron.instance.tracked_stream import AnchoredStream, AnchorHost, RootStream
from heron.instance.user_component import specialise

__all__ = ["FinishRoots"]

Kept = tuple[tuple[object, ...], str, int | None]


class FinishRoots:
    """From the call of `finish` on: what was emitted, until it is acked."""

    def __init__(
        self, emitter: BoltEmitter, task: Task, failed_call: Callable[[str, Exception, str, object], None]
    ) -> None:
        self._emitter = emitter
        self._book = RootBook(monotonic_s)
        self._settler = RootSettler(
            self._book, task.metrics, lambda doing, error, kept: failed_call(doing, error, "it is lost", kept)
        )
        self._settler.on_fail = self._emit_again
        self.begun = False

    def make_stream(self, tracker: AnchorHost) -> StreamMaker:
        """Makes the bolt's output streams: anchored before `finish`, roots from then on."""

        def make(number: int, stream: StreamDefinition, routes: StreamRoutes, origin: StreamOrigin) -> OutStream:
            if self.begun:
                return RootStream(number, stream, routes, origin, self._book)
            return AnchoredStream(number, stream, routes, origin, tracker)

        return make

    def take(self, settled: RootsSettled) -> None:
        """Takes what became of roots."""
        self._settler.take(settled)
        self._emitter.flush()

    def lose_all(self) -> None:
        """The stream manager is a new one."""
        self._settler.lose_all()
        self._emitter.flush()

    def complete(self) -> bool:
        """Whether nothing of it is in flight."""
        return not self._book.in_flight and not self._emitter.pending_rows()

    def prepare(self, component: Bolt, apply_routes: Callable[[], None]) -> None:
        """Turns the component's emits into roots, where delivery is at least once."""
        if self.begun:
            apply_routes()
            specialise(component, {"emit": self._emit})
            self._emitter.emit = self._emit  # type: ignore[method-assign]  # an `emit` of the author's calls this one

    def _emit(
        self,
        values: Sequence[object],
        stream: str = DEFAULT_STREAM,
        anchors: Iterable[Tuple] | None = None,  # what it stems from is acked, or waits for itself
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        kept: Kept = (tuple(values), stream, direct_task)
        return self._emitter.add(kept[0], stream, direct_task, need_task_ids, tup_id=kept)

    def _emit_again(self, kept: object) -> None:
        values, stream, direct_task = cast("Kept", kept)  # what `_emit` gave as the id
        self._emitter.add(values, stream, direct_task, need_task_ids=False, tup_id=kept)

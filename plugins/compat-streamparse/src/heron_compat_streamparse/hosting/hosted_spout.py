"""The spout of Heron that owns an author's spout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from heron.api import Spout, TopologyContext
from heron_compat_streamparse.hosting.author import AuthorSpout
from heron_compat_streamparse.hosting.hosted_component import HostedComponent, author_place
from heron_compat_streamparse.hosting.reported_metrics import ReportedMetrics

__all__ = ["HostedSpout"]


class HostedSpout(Spout):
    """Owns an `AuthorSpout`. Each class of an author has a subclass of this one, whose name is that of the author's."""

    author_class: ClassVar[type[AuthorSpout]]

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Make and initialise the author's spout."""
        hosted = HostedComponent.of_config(config)
        self._metrics = ReportedMetrics(context)
        self.author: AuthorSpout = self.author_class()
        self.author_place = author_place(self.author)
        self.author._host = self
        hosted.prepare(self.author, config, context)

    def next_tuple(self) -> None:
        """`heron.api.Spout.next_tuple`."""
        self.author.next_tuple()

    def ack(self, tup_id: object) -> None:
        """`heron.api.Spout.ack`."""
        self.author.ack(tup_id)

    def fail(self, tup_id: object) -> None:
        """`heron.api.Spout.fail`."""
        self.author.fail(tup_id)

    def activate(self) -> None:
        """`heron.api.Spout.activate`."""
        self.author.activate()

    def deactivate(self) -> None:
        """`heron.api.Spout.deactivate`."""
        self.author.deactivate()

    def set_metric(self, name: str, value: object) -> None:
        """`Host.set_metric`."""
        self._metrics.set(name, value)

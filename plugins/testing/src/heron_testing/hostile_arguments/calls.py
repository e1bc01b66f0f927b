"""The rows of the matrix: each line of Python with which authors call the engine, or answer it.

In a line, `self` is the component, `context` its context, and `X` the argument. A line of a spout or bolt finds its
states and metrics as attributes of `self`, see `components`. A line of a file finds the `builder`, a spec `source` and
classes.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

__all__ = ["CALLS", "Call", "Caller"]


class Caller(enum.StrEnum):
    """Who calls, or answers a call of the engine."""

    BOLT = "bolt"
    SPOUT = "spout"
    GROUPING = "grouping"
    FILE = "file of a topology"
    PIPELINE = "pipeline"


@dataclass(frozen=True, slots=True)
class Call:
    """A row: a line of Python, and whose line it is."""

    caller: Caller
    line: str


_BOLT = """
self.emit(X)
self.emit([X])
self.emit([X], "keyed")
self.emit([X], "partial")
self.emit([0], X)
self.emit([0], anchors=X)
self.emit([0], anchors=[X])
self.emit([0], "direct", direct_task=X)
self.emit([0], need_task_ids=X)
self.emit_columns(X, "columns")
self.emit_columns({"value": X}, "columns")
self.emit_columns({"value": [X]}, "columns")
self.emit_columns({X: [0]}, "columns")
self.emit_columns({"value": [0]}, X)
self.emit_columns({"value": [0]}, "columns", anchors=X)
self.emit_columns({"value": [0]}, "columns", direct_task=X)
self.ack(X)
self.fail(X)
self.report_error(X)
self.log(X)
self.log("text", X)
self.is_tick(X)
raise ValueError(X)
raise Failure(X)
collector(context).emit(X)
collector(context).emit([X])
collector(context).emit([0], X)
collector(context).emit([0], anchors=X)
collector(context).emit([0], anchors=[X])
collector(context).emit([0], "direct", direct_task=X)
collector(context).ack(X)
collector(context).fail(X)
context.get_component_tasks(X)
context.get_sources(X)
context.register_metric(X, CountMetric(), 60)
context.register_metric("metric", X, 60)
context.register_metric("metric", CountMetric(), X)
context.register_metric("metric", Answering(X), 60)
context.register_metric("metric", Answering({"key": X}), 60)
context.register_metric("metric", Answering({X: 1} if hashable(X) else X), 60)
context.add_task_hook(X)
context.keyed_state(X, ValueState)
context.keyed_state("state", X)
context.keyed_state("state", ValueState, default=X)
context.keyed_state("state", ValueState, ttl_s=X)
context.keyed_state("state", ValueState, ttl_s=60, event_time=X)
context.owns(X)
self.values.put(X, 1)
self.values.put("key", X)
self.values.get(X)
self.values.remove(X)
X in self.values
self.counters.add(X)
self.counters.add("key", X)
self.counters.get(X)
self.lists.append(X, 1)
self.lists.append("key", X)
self.lists.put("key", X)
self.lists.get(X)
self.maps.put(X, "field", 1)
self.maps.put("key", X, 1)
self.maps.put("key", "field", X)
self.maps.get("key", X)
self.maps.fields(X)
self.maps.remove_field("key", X)
self.timed.advance(X)
self.state.put(X, 1)
self.state.put("key", X)
self.state.get(X)
self.count.incr(X)
self.counts.incr(X)
self.counts.incr("key", X)
self.counts.add_key(X)
self.mean.update(X)
self.means.update(X, 1.0)
self.means.update("key", X)
self.means.add_key(X)
self.gauge.update(X)
self.gauges.update(X, 1)
self.gauges.update("key", X)
ReducedMetric(X)
MultiReducedMetric(X).update("key", 1)
global_metrics.incr(X)
global_metrics.incr("key", X)
global_metrics.safe_incr(X)
default_serializer.serialize(X)
default_serializer.deserialize(X)
"""

_SPOUT = """
self.emit(X)
self.emit([X])
self.emit([0], X)
self.emit([0], stream=X)
self.emit([0], "id", "direct", X)
self.emit([0], "id", need_task_ids=X)
self.emit_columns({"value": [X]}, "id", "columns")
self.emit_columns({"value": [0]}, X, "columns")
self.emit_columns({"value": [0]}, stream="columns", ids=X)
self.emit_columns({"value": [0]}, stream="columns", ids=[X])
self.emit_watermark(X)
self.emit_watermark(1.0, idle=X)
self.report_error(X)
self.left = X
raise Failure(X)
collector(context).emit([X])
collector(context).emit([0], tup_id=X)
collector(context).emit([0], stream=X)
context.owns(X)
self.values.put(X, 1)
self.values.put("key", X)
"""

_FILE = """
TopologyBuilder(X)
builder.set_config(X)
builder.set_config({X: 1})
builder.set_config({"mine": X})
builder.set_config({"mine": {"deeper": [X]}})
builder.set_config({"topology.reliability.mode": X})
builder.set_config({"topology.stmgrs": X})
builder.set_config({"topology.tick.tuple.freq.secs": X})
builder.set_config({"topology.enable.message.timeouts": X})
builder.set_config({"topology.serializer": X})
builder.set_config({"topology.auto.task.hooks": X})
builder.set_config({"topology.columns.compression": X})
builder.add_spec(X)
builder.add_spout(X, Source, 1)
builder.add_spout("other", X, 1)
builder.add_spout("other", Source, X)
builder.add_spout("other", Source, 1, config=X)
builder.add_spout("other", Source, 1, config={"mine": X})
builder.add_spout("other", Source, 1, optional_outputs=X)
builder.add_spout("other", Source, 1, optional_outputs=[X])
builder.add_bolt(X, AuthorSink, 1, [source])
builder.add_bolt("other", X, 1, [source])
builder.add_bolt("other", AuthorSink, X, [source])
builder.add_bolt("other", AuthorSink, 1, X)
builder.add_bolt("other", AuthorSink, 1, [X])
builder.add_bolt("other", AuthorSink, 1, {source: X})
builder.add_bolt("other", AuthorSink, 1, {source[X]: Grouping.SHUFFLE})
builder.add_bolt("other", AuthorSink, 1, {source: Grouping.fields(X)})
builder.add_bolt("other", AuthorSink, 1, {source: Grouping.fields([X])})
builder.add_bolt("other", AuthorSink, 1, {source: Grouping.PARTIAL_KEY(X)})
builder.add_bolt("other", AuthorSink, 1, {source: Grouping.custom(X)})
builder.add_bolt("other", AuthorSink, 1, {source: Grouping.custom(AuthorGrouping, X)})
builder.add_bolt("other", AuthorSink, 1, {source: Grouping.custom(AuthorGrouping, {"value": X})})
builder.add_spec(AuthorSink.spec(name=X, inputs=[source]))
Stream(X)
Stream([X])
Stream(["field"], X)
Stream(["field"], "name", X)
"""

_PIPELINE = """
builder.new_source(X)
builder.new_columns(X)
stream.map(X)
stream.map(answer)
stream.flat_map(X)
stream.flat_map(answers)
stream.filter(X)
stream.filter(answer)
stream.transform(X)
stream.union(X)
stream.repartition(X)
stream.repartition(2, X)
stream.repartition(2, lambda element, partitions: X if element == 5 else 0)
stream.clone(X)
stream.split(X)
stream.split({"all": X})
stream.split({X: same})
stream.split({"all": answer})["all"]
stream.event_time(X)
stream.event_time(answer)
stream.event_time(same, lag=X)
stream.event_time(same, idle_after=X)
stream.event_time(same, max_ahead=X)
stream.key_by(X)
stream.key_by(answer).count_by_key()
stream.key_by(same, X)
stream.key_by(same, answer)
stream.key_by(same).map_values(answer)
stream.key_by(same).reduce_by_key(X)
stream.key_by(same, answer).reduce_by_key(second)
stream.key_by(half).reduce_by_key(lambda before, after: X if after == 5 else after).map(value_of)
stream.key_by(same).map_with_state(lambda key, value, state: (answer(value), state))
stream.key_by(same).map_with_state(lambda key, value, state: (value, answer(value)))
stream.map(answer).distinct()
stream.event_time(same).key_by(same).count_by_key_and_window(X)
stream.event_time(same).key_by(same).reduce_by_key_and_window(tumbling_window(1), X)
stream.event_time(same).key_by(same, answer).reduce_by_key_and_window(tumbling_window(1), second)
stream.event_time(same).key_by(same).join(X, tumbling_window(1), second)
stream.event_time(same).key_by(same).count_by_key_and_window(tumbling_window(1)).early(X)
tumbling_window(X)
sliding_window(X, 1)
sliding_window(2, X)
session_window(X)
count_window(X)
stream.consume(X)
stream.to_sink(X)
stream.to_view(X)
stream.set_name(X)
stream.set_num_partitions(X)
stream.to_columns(X)
Config().set_delivery_semantics(X)
Runner().run(X, Config(), builder)
Runner().run("name", X, builder)
Runner().run("name", Config(), X)
"""

_GROUPING = """
return X
return [X]
return [*self.tasks, X]
raise Failure(X)
"""

CALLS: tuple[Call, ...] = tuple(
    Call(caller, line)
    for caller, lines in (
        (Caller.BOLT, _BOLT),
        (Caller.SPOUT, _SPOUT),
        (Caller.GROUPING, _GROUPING),
        (Caller.FILE, _FILE),
        (Caller.PIPELINE, _PIPELINE),
    )
    for line in lines.strip().splitlines()
)
"""All rows."""

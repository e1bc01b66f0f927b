"""Tables of metrics on their way from the topology manager: short, and with every value on the other side."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron.errors import RemoteProtocolError
from heron.ipc.documents.metrics_table import (
    MetricsRow,
    MetricsSeries,
    MetricsValue,
    decode_metrics,
    encode_metrics,
    read_metrics,
    table_of,
)

GAUGE = MetricsRow("count", 3, "count-3", "resident-bytes", "gauge", "bytes", 3.0)
COUNTER = MetricsRow("count", 3, "count-3", "emit-count", "counter", "tuples", 7.0, {"stream": "default"}, 0.0)
OTHER_STREAM = MetricsRow("count", 3, "count-3", "emit-count", "counter", "tuples", 1.0, {"stream": "late"}, 0.0)
OTHER_TASK = MetricsRow("count", 4, "count-4", "emit-count", "counter", "tuples", 8.0, {"stream": "default"}, 1.0)
HISTOGRAM = MetricsRow("count", 4, "count-4", "latency", "histogram", "s", 7.0, {}, 2.0, 0.5, 0.9)
ENGINE = MetricsRow("", 0, "stmgr-1", "resident-bytes", "gauge", "bytes", 5.0)
ROWS = (GAUGE, COUNTER, OTHER_STREAM, OTHER_TASK, HISTOGRAM, ENGINE)

SERIES = [["emit-count", "counter", "tuples", {}]]


def test_a_series_is_sent_once() -> None:
    """Its rows have its place. A rate of 0 was measured."""
    series, owners = json.loads(encode_metrics(table_of(ROWS)))
    assert [each[0] for each in series] == ["resident-bytes", "emit-count", "emit-count", "latency"]
    assert series[2] == ["emit-count", "counter", "tuples", {"stream": "late"}]
    assert owners[0] == [
        "count",
        3,
        "count-3",
        [[0, 3.0, None, None, None], [1, 7.0, 0.0, None, None], [2, 1.0, 0.0, None, None]],
    ]
    assert owners[2] == ["", 0, "stmgr-1", [[0, 5.0, None, None, None]]]


NAMES = st.sampled_from(["", "a", "b", "\u00e4"])
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
KNOWN = st.none() | NUMBERS


@given(
    st.lists(
        st.builds(
            MetricsRow,
            NAMES,
            st.integers(0, 3),
            NAMES,
            NAMES,
            NAMES,
            NAMES,
            NUMBERS,
            st.dictionaries(NAMES, NAMES, max_size=2),
            KNOWN,
            KNOWN,
            KNOWN,
        ),
        max_size=12,
    )
)
def test_every_row_arrives_in_its_order(rows: list[MetricsRow]) -> None:
    """Also where one owner comes twice, or has a row twice."""
    assert decode_metrics(encode_metrics(table_of(rows))) == tuple(rows)


def test_rows_of_one_series_share_their_labels() -> None:
    """A window of observations has hundreds of thousands of rows."""
    rows = decode_metrics(encode_metrics(table_of(ROWS)))
    assert rows[1].labels is rows[3].labels


class Emitted:
    """Reads the emitted tuples of tasks, and notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.found: list[tuple[int, float]] = []

    def of_owner(self, component: str, task_id: int, process: str) -> int | None:
        self.asked.append(process)
        return task_id if component else None

    def of_series(self, series: MetricsSeries) -> Callable[[int, MetricsValue], None] | None:
        self.asked.append(series.name)
        return (lambda task_id, each: self.found.append((task_id, each.value))) if "emit" in series.name else None


@pytest.mark.parametrize("encode", [lambda rows: encode_metrics(table_of(rows)), msgspec.json.encode])
def test_a_reader_skips_owners_and_series(encode: Callable[[tuple[MetricsRow, ...]], bytes]) -> None:
    """By returning None; also in the rows of an earlier topology manager."""
    reader = Emitted()
    of_engine = MetricsRow("", 0, "stmgr-1", "emit-count", "counter", "tuples", 99.0)
    read_metrics(encode((*ROWS, of_engine)), reader)
    assert reader.found == [(3, 7.0), (3, 1.0), (4, 8.0)]


def test_a_reader_is_asked_once_about_each_owner_and_series() -> None:
    """A table has hundreds of thousands of values."""
    reader = Emitted()
    table = table_of(ROWS)
    read_metrics(encode_metrics(table), reader)
    assert reader.asked == [each.name for each in table.series] + [each.process for each in table.owners]


def test_a_reader_is_not_asked_about_an_owner_without_values() -> None:
    """A process that has none of the metrics that were asked for is in the table, too."""
    reader = Emitted()
    owners = [["count", 3, "count-3", [[0, 7.0]]], ["split", 4, "split-4", []]]
    read_metrics(json.dumps([SERIES, owners]).encode(), reader)
    assert (reader.asked, reader.found) == (["emit-count", "count-3"], [(3, 7.0)])


def test_what_a_newer_topology_manager_adds_is_left_out() -> None:
    """These are elements at the end of lists. What an older one leaves out was not measured."""
    newer = [[[*SERIES[0], "?"]], [["count", 3, "count-3", [[0, 7.0, 1.0, None, None, "?"]], "?"]], "?"]
    (row,) = decode_metrics(json.dumps(newer).encode())
    assert (row.name, row.task_id, row.value, row.rate_per_s) == ("emit-count", 3, 7.0, 1.0)
    (row,) = decode_metrics(json.dumps([[["emit-count", "counter", "tuples"]], [["count", 3, "c", [[0, 7]]]]]).encode())
    assert (row.value, row.labels, row.rate_per_s, row.p99) == (7.0, {}, None, None)


def test_rows_of_an_earlier_topology_manager_are_read() -> None:
    """It sends objects."""
    for rows in (ROWS, ()):
        assert decode_metrics(msgspec.json.encode(rows)) == rows


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[",
        b"{}",
        b"[[]]",
        b'[{"name": 1}]',
        b'[["\xff", []]]',
        b"\xff",
        json.dumps([SERIES, [["count", 3, "count-3", [[1, 7.0]]]]]).encode(),
        json.dumps([SERIES, [["count", 3, "count-3", [[-1, 7.0]]]]]).encode(),
        json.dumps([SERIES, [["count", 3, "count-3", [[0, "7"]]]]]).encode(),
        json.dumps([SERIES, [["count", "3", "count-3", []]]]).encode(),
        json.dumps([SERIES, ["count"]]).encode(),
    ],
)
def test_a_document_that_is_no_table_is_refused(document: bytes) -> None:
    """With its size."""
    with pytest.raises(RemoteProtocolError, match=f"metrics of {len(document)} bytes cannot be read: .+"):
        decode_metrics(document)

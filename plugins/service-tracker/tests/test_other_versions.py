"""A tracker that is older or newer than a topology: what both know is shown, and the rest hides nothing."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from heron.errors import RemoteProtocolError
from heron.ipc.documents.metrics_table import decode_metrics, encode_metrics, table_of
from heron.ipc.documents.status import decode_status, encode_status
from heron_cli.client import MetricsRow, TopologyStatus
from heron_service_tracker.answers.flow import task_rows
from heron_service_tracker.watches.observations import Observations

MakeStatus = Callable[..., TopologyStatus]
MakeMetrics = Callable[..., tuple[MetricsRow, ...]]


def test_a_newer_topology_is_shown_without_what_this_tracker_does_not_know(
    observations: Observations, make_status: MakeStatus, make_metrics: MakeMetrics
) -> None:
    """Its answers have more fields, kinds of states and metrics."""
    status = json.loads(encode_status(make_status()))
    status["weather"] = {"rain": True}
    status["tasks"][0] |= {"state": "hibernating", "mood": 5}
    series, owners = json.loads(encode_metrics(table_of(make_metrics())))
    series[0].append("unit of unit")
    series.append(["mood", "spectrum", "x", {}, "y"])
    owners[0][-1].append([len(series) - 1, 5.0])
    newer = decode_status(json.dumps(status).encode())
    observations.put_status("near", newer, decode_metrics(json.dumps([series, owners, "weather"]).encode()))
    found = {each.task_id: each for each in task_rows(observations.topology("near", "words"))}
    assert (found[1].state, found[1].emit_per_s, found[2].rate_per_s) == ("hibernating", 10.0, 9.0)


def test_an_older_topology_is_shown_with_what_it_says(observations: Observations) -> None:
    """Fields that came later are empty."""
    older = decode_status(
        b'{"topology": "words", "topology_id": "words-1", "state": "running", "started_at_s": 1.0, "tasks": '
        b'[{"task_id": 1, "component": "lines", "container_id": 1, "state": "running", "incarnation": 1}]}'
    )
    observations.put_status("near", older, None)
    (row,) = task_rows(observations.topology("near", "words"))
    assert (row.task_id, row.host, row.long_call) == (1, "", "")


@pytest.mark.parametrize("document", [b"", b"{}", b"[]", b'{"topology": 5}', b"\xff"])
def test_an_answer_that_is_none_is_an_error_of_the_topology(document: bytes) -> None:
    """The watch shows it as the reason, and the last values stay."""
    with pytest.raises(RemoteProtocolError):
        decode_status(document)
    if document != b"[]":  # no metrics are an answer of an older topology
        with pytest.raises(RemoteProtocolError):
            decode_metrics(document)

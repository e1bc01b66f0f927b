"""The last report reads as a status too, and is kept for a day."""

from __future__ import annotations

import pytest

from heron.errors import StateError
from heron.ipc.status import TopologyStatus, decode_status, encode_status
from heron_cli.client.execution_state import ExecutionState
from heron_cli.client.last_report import LastReport, decode_last_report, encode_last_report

STATUS = TopologyStatus("Words", "Words-1", "killed", 10.0, error="why", ended_at_s=20.0)
RUN = ExecutionState("Words", "Words-1", 10.0, "me", "here", "local", "uri", "run", "logs", attached=False, role="ads")
DAY_S = 24 * 3600


def test_it_survives_the_node_and_a_status_reader_reads_it() -> None:
    """Commands that know only statuses read the same node."""
    data = encode_last_report(LastReport(STATUS, RUN, 2, 4))
    assert decode_last_report(data, "Words") == LastReport(STATUS, RUN, 2, 4)
    assert decode_status(data) == STATUS


def test_what_a_topology_manager_wrote_is_one_without_additions() -> None:
    """Nobody has tidied up yet."""
    assert decode_last_report(encode_status(STATUS), "Words") == LastReport(STATUS)


def test_it_is_kept_for_a_day_after_the_end() -> None:
    """Not after the beginning: a topology may run for months."""
    report = LastReport(STATUS)
    assert not report.expired(20.0 + DAY_S)
    assert report.expired(20.1 + DAY_S)


def test_something_else_is_refused_with_the_name_of_the_node() -> None:
    """Who changed it by hand must find it."""
    with pytest.raises(StateError, match=r"node reports/Words: cannot be read .*`heron kill Words` removes it"):
        decode_last_report(b'{"topology": 7}', "Words")

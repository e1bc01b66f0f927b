"""The report reads as a status too, and is kept for a day."""

from __future__ import annotations

from heron.ipc.documents.status import TopologyStatus, decode_status, encode_status
from heron.state_nodes.execution_state import ExecutionState
from heron.state_nodes.report import LastReport, decode_report, encode_report

STATUS = TopologyStatus("Words", "Words-1", "killed", 10.0, error="why", ended_at_s=20.0)
RUN = ExecutionState("Words", "Words-1", 10.0, "me", "here", "local", "uri", "run", "logs", attached=False, role="ads")
DAY_S = 24 * 3600


def test_a_reader_of_a_status_reads_the_report() -> None:
    """The fields of the status are fields of the report."""
    data = encode_report(LastReport(STATUS, RUN, 2, 4))
    assert decode_report(data, "Words") == LastReport(STATUS, RUN, 2, 4)
    assert decode_status(data) == STATUS


def test_a_bare_status_is_a_report_without_a_run() -> None:
    """Former versions of the topology manager wrote the status alone."""
    assert decode_report(encode_status(STATUS), "Words") == LastReport(STATUS)


def test_it_is_kept_for_a_day_after_the_end() -> None:
    """The start does not count, because a topology may run for months."""
    report = LastReport(STATUS)
    assert not report.expired(20.0 + DAY_S)
    assert report.expired(20.1 + DAY_S)

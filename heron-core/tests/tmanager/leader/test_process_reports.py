"""The table of processes, from the reports of executors."""

from __future__ import annotations

from heron.kernel.role_spec import incarnation
from heron.tmanager.leader.process_reports import ProcessReport, ProcessTable
from heron.tmanager.leader.task_table import TaskEvent


def report(event: TaskEvent, attempt: int = 1, restarts: int = 0, pid: int = 0, reason: str = "") -> ProcessReport:
    """A report about the stream manager of container 2."""
    return ProcessReport(2, "stmgr", 0, incarnation(attempt, restarts), event, reason, restarts, pid)


def rows(table: ProcessTable) -> list[tuple[str, str, int, int, str]]:
    return [(each.process, each.state, each.pid, each.restarts, each.last_error) for each in table.statuses()]


def test_a_process_dies_and_is_restarted() -> None:
    """Its last error stays in the table."""
    table = ProcessTable()
    table.begin(2, 1, 7, "here")
    table.take(report(TaskEvent.STARTED, pid=8))
    assert rows(table) == [("executor", "running", 7, 0, ""), ("stmgr", "running", 8, 0, "")]
    table.take(report(TaskEvent.DIED, restarts=1, reason="killed by SIGKILL"))
    assert rows(table)[1] == ("stmgr", "restarting", 0, 1, "killed by SIGKILL")
    table.take(report(TaskEvent.STARTED, restarts=1, pid=9))
    assert rows(table)[1] == ("stmgr", "running", 9, 1, "killed by SIGKILL")
    table.take(report(TaskEvent.GIVEN_UP, restarts=2, reason="exit code 3"))
    assert rows(table)[1] == ("stmgr", "down", 0, 2, "exit code 3")


def test_a_new_attempt_of_a_container_clears_its_processes() -> None:
    """Reports about processes of the former attempt are ignored."""
    table = ProcessTable()
    table.begin(2, 1, 7, "here")
    table.take(report(TaskEvent.STARTED, pid=8))
    table.begin(2, 2, 17, "there")
    table.begin(2, 1, 7, "here")
    table.take(report(TaskEvent.DIED, restarts=1))
    assert rows(table) == [("executor", "running", 17, 1, "")]
    table.take(report(TaskEvent.STARTED, attempt=2, pid=18))
    assert rows(table)[1] == ("stmgr", "running", 18, 0, "")
    assert {each.host for each in table.statuses()} == {"there"}


def test_an_executor_that_registers_again_changes_nothing() -> None:
    """Its connection was interrupted; its processes go on."""
    table = ProcessTable()
    table.begin(2, 1, 7, "here")
    table.take(report(TaskEvent.STARTED, pid=8))
    before = table.statuses()
    table.begin(2, 1, 7, "here")
    assert table.statuses() == before

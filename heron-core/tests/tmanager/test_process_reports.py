"""Every process as its executor reports it."""

from __future__ import annotations

from heron.kernel.role_spec import incarnation
from heron.tmanager.process_reports import ProcessReport, ProcessTable
from heron.tmanager.task_table import TaskEvent


def news(event: TaskEvent, attempt: int = 1, restarts: int = 0, pid: int = 0, reason: str = "") -> ProcessReport:
    """Of the stream manager of container 2."""
    return ProcessReport(2, "stmgr", 0, incarnation(attempt, restarts), event, reason, restarts, pid)


def told(table: ProcessTable) -> list[tuple[str, str, int, int, str]]:
    return [(each.process, each.state, each.pid, each.restarts, each.last_error) for each in table.statuses()]


def test_a_process_that_dies_and_comes_back() -> None:
    """Its last error stays, for whoever looks later."""
    table = ProcessTable()
    table.begin(2, 1, 7, "here")
    table.take(news(TaskEvent.STARTED, pid=8))
    assert told(table) == [("executor", "running", 7, 0, ""), ("stmgr", "running", 8, 0, "")]
    table.take(news(TaskEvent.DIED, restarts=1, reason="killed by SIGKILL"))
    assert told(table)[1] == ("stmgr", "restarting", 0, 1, "killed by SIGKILL")
    table.take(news(TaskEvent.STARTED, restarts=1, pid=9))
    assert told(table)[1] == ("stmgr", "running", 9, 1, "killed by SIGKILL")
    table.take(news(TaskEvent.GIVEN_UP, restarts=2, reason="exit code 3"))
    assert told(table)[1] == ("stmgr", "down", 0, 2, "exit code 3")


def test_a_container_that_begins_anew_has_new_processes() -> None:
    """Those of the attempt before are gone, and what is still said of them is no news."""
    table = ProcessTable()
    table.begin(2, 1, 7, "here")
    table.take(news(TaskEvent.STARTED, pid=8))
    table.begin(2, 2, 17, "there")
    table.begin(2, 1, 7, "here")
    table.take(news(TaskEvent.DIED, restarts=1))
    assert told(table) == [("executor", "running", 17, 1, "")]
    table.take(news(TaskEvent.STARTED, attempt=2, pid=18))
    assert told(table)[1] == ("stmgr", "running", 18, 0, "")
    assert {each.host for each in table.statuses()} == {"there"}


def test_an_executor_that_says_hello_again_changes_nothing() -> None:
    """Its connection was broken, its processes go on."""
    table = ProcessTable()
    table.begin(2, 1, 7, "here")
    table.take(news(TaskEvent.STARTED, pid=8))
    before = table.statuses()
    table.begin(2, 1, 7, "here")
    assert table.statuses() == before

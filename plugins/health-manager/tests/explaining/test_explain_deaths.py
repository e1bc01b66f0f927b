"""Deaths in words: what the records prove, with the numbers, and what they rule out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec.structs import replace as replaced

from heron.executor.process_restarts import describe_exit
from heron.ipc.documents.status import ComponentStatus, ProcessStatus, TaskStatus, TopologyStatus, UserErrorStatus
from heron_health_manager.explaining.death_reason import DeathKind, death_reason
from heron_health_manager.explaining.explain import explain
from heron_health_manager.explaining.explanation_text import MOST_LINES, explanation_lines
from heron_health_manager.explaining.facts import Facts, PastEvent, PastGauges
from heron_health_manager.explaining.gathering import grown

MIB = 2**20
NOW_S = 1_795_612_800.0  # 2026-11-25 13:20:00 UTC
STATUS = TopologyStatus("words", "words-1", "running", NOW_S - 900.0)
BY_KERNEL = "killed by SIGKILL (by the kernel for memory; limit 1.0 GiB)"
BY_PERSON = "killed by SIGKILL (not by its executor, and not by the kernel for memory; no memory limit is set)"
ERROR = "exit code 1: LookupError: the table of prices is missing"


def died(ago_s: float, reason: str, process: str = "count-3", container: int = 1) -> PastEvent:
    return PastEvent(NOW_S - ago_s, "process-died", process, container, {"reason": reason})


def facts(*events: PastEvent, **changes: object) -> Facts:
    ordered = tuple(sorted(events, key=lambda each: each.at_s))
    found = Facts("words", NOW_S, NOW_S - 600.0, status=STATUS, events=ordered)
    return replace(found, **changes)  # type: ignore[arg-type]  # a test names fields of Facts


def lines_of(found: Facts) -> list[str]:
    lines = explanation_lines(explain(found))
    assert len(lines) <= MOST_LINES
    assert all("\n" not in line for line in lines)
    return lines


def gauges(ago_s: float, incarnation: int = 3, **values: float) -> PastGauges:
    named = {name.replace("_", "-"): value for name, value in values.items()}
    renamed = {"user/window" if name == "window" else name: value for name, value in named.items()}
    return PastGauges(NOW_S - ago_s, 1, "count-3", incarnation, renamed)


def test_a_kill_for_memory_says_what_had_grown() -> None:
    """How often, by whom, the limit, and the window of the last life."""
    history = [died(ago_s, BY_KERNEL) for ago_s in (570.0, 400.0, 200.0, 10.0)]
    before = (
        gauges(205.0, incarnation=2, window=9e9, resident_bytes=9e12),
        gauges(62.0, resident_bytes=80 * MIB),
        gauges(60.0, window=12.0, resident_bytes=90 * MIB),
        gauges(12.0, window=3_100_000.0, resident_bytes=1024 * MIB),
    )
    assert lines_of(facts(*history, gauges=before)) == [
        "words: count/3 was restarted 4 times in 9 min 20 s",
        "  since      13:10:30 UTC, for 9 min 30 s",
        "  why        killed by the kernel for memory (limit 1.0 GiB), 4 of 4 times, 2.0 s after its window grew "
        "to 3.1 M",
        "             its memory grew from 80.0 MiB to 1.0 GiB in 50 s",
        "  ruled out  an error of its code (it left no exit code); its executor (it sent no signal)",
        "  to do      give container 1 more memory, or keep less in count",
        "             heron logs words --task 3",
    ]


def test_an_earlier_life_is_no_growth() -> None:
    """A process that begins again is small; what it was before its last death says nothing about this one."""
    lives = (
        gauges(30.0, incarnation=2, window=1.0, resident_bytes=MIB),
        gauges(12.0, window=9.0, resident_bytes=9 * MIB),
    )
    (problem,) = explain(facts(died(20.0, BY_KERNEL), died(10.0, BY_KERNEL), gauges=lives)).problems
    assert problem.why == ("killed by the kernel for memory (limit 1.0 GiB), 2 of 2 times",)


def test_a_kill_without_growth_claims_none() -> None:
    """A record that is left out, or a window that stays, shows nothing."""
    (problem,) = explain(facts(died(10.0, BY_KERNEL), gauges=(gauges(12.0, window=9.0),))).problems
    assert problem.why == ("killed by the kernel for memory (limit 1.0 GiB)",)
    still = (gauges(40.0, window=9.0, resident_bytes=MIB), gauges(12.0, window=9.0, resident_bytes=MIB))
    (problem,) = explain(facts(died(10.0, BY_KERNEL), gauges=still)).problems
    assert problem.why == ("killed by the kernel for memory (limit 1.0 GiB)",)


def test_a_signal_of_a_stranger_is_not_explained_further() -> None:
    """Who sent it is not recorded anywhere, so nothing is said about it."""
    (problem,) = explain(facts(died(10.0, BY_PERSON))).problems
    assert problem.what == "count/3 was restarted once"
    assert problem.why == ("killed by SIGKILL; who sent it is not known; no memory limit is set",)
    assert problem.ruled_out == (
        "an error of its code (it left no exit code)",
        "its executor (it sent no signal)",
        "the kernel's killer for memory (it has counted no kill)",
    )


def test_an_error_of_the_code_shows_its_last_output() -> None:
    """And the line of the author's file, where the task has reported it."""
    reported = (
        "topology 'words', component 'count', task 3 (container 1): process raised LookupError: gone; at a.py, line 7"
    )
    status = replace(STATUS, errors=(reported,))
    (problem,) = explain(facts(died(20.0, ERROR), died(10.0, ERROR), status=status)).problems
    assert problem.why == (
        "exit code 1, 2 of 2 times",
        "its last output: LookupError: the table of prices is missing",
        "process raised LookupError: gone; at a.py, line 7",
    )
    assert problem.command == "heron logs words --task 3"


def test_causes_that_change_are_counted_apart() -> None:
    """Three kills of a person before an exit are no exit."""
    (problem,) = explain(facts(*(died(each, BY_PERSON) for each in (40.0, 30.0, 20.0)), died(10.0, ERROR))).problems
    assert problem.why[0] == "exit code 1, 1 of 4 times"


def test_a_process_that_is_given_up_comes_first() -> None:
    """It does not come back by itself; the command says how to bring it back."""
    down = PastEvent(NOW_S - 10.0, "process-given-up", "count-3", 1)
    answer = explain(facts(died(90.0, BY_PERSON, "split-2"), died(10.0, ERROR), down))
    assert [each.kind for each in answer.problems] == ["given-up", "restarts"]
    assert answer.problems[0].what == "count/3 died once and is given up"
    assert "heron restart" in answer.problems[0].action


def test_a_process_that_was_started_again_is_not_given_up() -> None:
    """`heron restart` has brought it back."""
    down = PastEvent(NOW_S - 9.0, "process-given-up", "count-3", 1)
    up = PastEvent(NOW_S - 5.0, "process-started", "count-3", 1)
    assert explain(facts(died(10.0, ERROR), down, up)).problems[0].kind == "restarts"


def test_containers_and_engine_processes_die_too() -> None:
    """The supervisor has logged the end of a container, whose own processes leave no record."""
    ended = PastEvent(NOW_S - 20.0, "container-ended", "container-2", 2, {"reason": "killed by SIGKILL"})
    answer = explain(facts(ended, died(10.0, BY_PERSON, "stmgr")))
    assert [each.what for each in answer.problems] == [
        "container 2 was restarted once",
        "the stream manager of container 1 was restarted once",
    ]
    assert answer.problems[0].why == ("killed by SIGKILL; who sent it is not known",)


def test_earlier_deaths_are_left_out() -> None:
    """They are no longer what suffers; `--since` widens the time."""
    assert explain(facts(died(700.0, ERROR))).problems == ()
    assert len(explain(facts(died(700.0, ERROR), since_s=NOW_S - 800.0)).problems) == 1


def test_two_causes_at_once_share_the_lines() -> None:
    """Each has its own, and the more frequent death comes first."""
    lines = lines_of(facts(died(20.0, BY_PERSON, "split-2"), *(died(each, BY_KERNEL) for each in (30.0, 9.0))))
    assert len(lines) == MOST_LINES
    assert lines[0] == "words: count/3 was restarted 2 times in 21 s, since 13:19:30 UTC"
    assert lines[4] == "words: split/2 was restarted once, since 13:19:40 UTC"


def test_more_causes_name_the_others() -> None:
    """Nothing is hidden: the last line says where the rest is."""
    lines = lines_of(facts(*(died(10.0, ERROR, f"count-{task}") for task in range(3, 8))))
    assert lines[-2] == "also: count/5 was restarted once; count/6 was restarted once; count/7 was restarted once"
    assert lines[-1] == "everything: heron explain words --json"


def test_without_a_history_the_status_is_used() -> None:
    """The containers run on other hosts: the count and the last reason are left."""
    process = ProcessStatus(1, "count-3", "running", 7, 4, 3, 4, "here", ERROR)
    lacking = facts(events=None, status=replace(STATUS, processes=(process,)), unknown=("the history: none here",))
    lines = lines_of(lacking)
    assert lines[0] == "words: count/3 was restarted 4 times"
    assert not any("since" in line for line in lines)
    assert lines[-1] == "  not known  the history: none here"


def test_a_history_that_lacks_deaths_is_named() -> None:
    """Files are rotated, and another host has its own."""
    process = ProcessStatus(1, "count-3", "running", 7, 4, 3, 4, "here", ERROR)
    answer = explain(facts(died(10.0, ERROR), status=replace(STATUS, processes=(process,))))
    assert answer.unknown == ("the status counts 4 restarts of count/3, the history of events has 1",)


def test_an_empty_history_is_healthy_as_far_as_it_goes() -> None:
    """No events, no metrics: nothing is claimed about the load."""
    assert lines_of(facts()) == [
        "words: nothing suffers that is known; its tasks have sent no metrics",
        "no process died in the last 10 min",
    ]


def test_an_end_by_a_death_has_the_death_as_its_cause() -> None:
    """One problem, not two."""
    error = "topology 'words', component 'count', task 3 (container 1) died too often and is given up: " + ERROR
    down = PastEvent(NOW_S - 1.0, "process-given-up", "count-3", 1)
    ended = replace(STATUS, state="failed", ended_at_s=NOW_S, error=error)
    lines = lines_of(facts(died(2.0, ERROR), died(1.0, ERROR), down, status=ended, running=False))
    assert lines[0] == "words failed at 13:20:00 UTC, after 15 min"
    assert lines[2] == "  why        count/3 died 2 times in 1.0 s and is given up"
    assert lines[3].strip() == "exit code 1, 2 of 2 times"


@pytest.mark.parametrize("state", ["finished", "killed"])
def test_a_good_end_is_no_problem(state: str) -> None:
    """Though what died before it is told."""
    ended = replace(STATUS, state=state, ended_at_s=NOW_S)
    verb = "finished" if state == "finished" else "was killed"
    healthy = lines_of(facts(status=ended, running=False))
    assert healthy[0] == f"words {verb} at 13:20:00 UTC, after 15 min; nothing suffered"
    ill = lines_of(facts(died(10.0, ERROR), status=ended, running=False))
    assert ill[0] == f"words ({state} at 13:20:00 UTC): count/3 died once"
    assert ill[1] == "  since      13:19:50 UTC, 10 s before the end"


def test_an_end_without_a_report_is_found_in_the_history() -> None:
    """`heron run` removes the state; its events stay with its logs."""
    start = PastEvent(NOW_S - 60.0, "container-started", "container-0", 0)
    end = PastEvent(NOW_S, "topology-ended", "topology", 0, {"state": "failed", "error": "no disk"})
    (problem,) = explain(facts(start, end, status=None, running=False)).problems
    assert (problem.what, problem.why) == ("words failed at 13:20:00 UTC, after 1 min", ("no disk",))


def test_an_end_that_nobody_recorded_is_said_to_be_one() -> None:
    """All of its processes were killed at once."""
    (problem,) = explain(facts(died(10.0, BY_PERSON, "tmanager"), status=None, running=False)).problems[:1]
    last = "its last event was at 13:19:50 UTC"
    assert problem.what == f"words does not run any more, and no end is recorded; {last}"


def test_errors_that_only_fail_tuples_are_told() -> None:
    """The process lives on; the first message of each task counts."""
    message = "topology 'words', component 'count', task 3: process with Tuple(1) raised KeyError: 'a'; at a.py, line 3"
    event = PastEvent(NOW_S - 5.0, "user-error", "task-3", 1, {"message": message})
    (problem,) = explain(facts(event)).problems
    assert problem.what == "count/3 raises in its code"
    assert problem.why == ("process with Tuple(1) raised KeyError: 'a'; at a.py, line 3",)


def test_errors_of_an_ended_topology_are_told_whenever_they_began() -> None:
    """A task reports an error of a line once, and it may have failed tuples until the end."""
    message = "topology 'words', component 'count', task 3: process with Tuple(1) raised KeyError: 'a'; at a.py, line 3"
    event = PastEvent(NOW_S - 5000.0, "user-error", "task-3", 1, {"message": message})
    failed = ComponentStatus("count", "bolt", 1, failed=1576), ComponentStatus("lines", "spout", 1, failed=1576)
    status = replace(STATUS, state="finished", ended_at_s=NOW_S, components=failed)
    (problem,) = explain(facts(event, status=status, running=False)).problems
    assert problem.what == "count/3 raises in its code; 1,576 tuples of count failed"
    assert problem.why[1] == "its log has each error once, with its traceback"
    (unknown,) = explain(facts(status=status, running=False)).problems
    assert unknown.what == "1,576 tuples of count failed"
    assert explain(facts(event)).problems == (), "a running topology fails nothing now"


def test_an_error_that_began_long_ago_is_told_while_it_fails_tuples() -> None:
    """Only of the component that fails them now; with the number of the observation."""
    text = "topology 'words', component '{}', task {}: process with Tuple(1) raised KeyError: 'a'; at a.py, line 3"
    subjects = ("count", 3), ("split", 4)
    events = [
        PastEvent(NOW_S - 5000.0, "user-error", f"task-{task}", 1, {"message": text.format(name, task)})
        for name, task in subjects
    ]
    status = replace(STATUS, components=tuple(ComponentStatus(name, "bolt", 1, failed=176) for name, _ in subjects))
    (problem,) = explain(facts(*events, status=status, failing={"count": 12}, observed_s=15.0)).problems
    assert problem.what == "count/3 raises in its code; 176 tuples of count failed, 12 of them in the last 15 s"
    assert problem.since_s == NOW_S - 5000.0


def test_an_error_of_several_tasks_is_one_problem_with_its_count() -> None:
    """It is told while it is raised, however long ago it began, also where nothing has the history."""
    text = (
        "topology 'words', component 'count', task {}: process with Tuple(1) raised KeyError: 'a'; at /a.py, line 3; x"
    )
    events = [PastEvent(NOW_S - 5000.0, "user-error", f"task-{n}", 1, {"message": text.format(n)}) for n in (3, 4)]
    error = UserErrorStatus("count", "process: KeyError at /a.py, line 3", 1140, {3: 1000, 4: 140}, NOW_S - 5000.0)
    error = replaced(
        error, newest_at_s=NOW_S - 3.0, exception="KeyError", place="/a.py, line 3", message=text.format(3)
    )
    status = replace(STATUS, user_errors=(error,), errors=(text.format(3), text.format(4)))
    for known in (facts(*events, status=status), replace(facts(status=status), events=None)):
        (problem,) = explain(known).problems
        assert problem.what == "count/3, count/4 raised KeyError 1,140 times at a.py, line 3, the newest 3.0 s ago"
        assert problem.since_s == NOW_S - 5000.0
        assert problem.why[1] == "its log has each error once, with its traceback"
    over = replaced(error, newest_at_s=NOW_S - 4000.0)
    assert explain(facts(*events, status=replace(status, user_errors=(over,)))).problems == ()
    many = replaced(error, tasks=dict.fromkeys(range(3, 30), 1), count=27)
    (problem,) = explain(facts(*events, status=replace(status, user_errors=(many,)))).problems
    assert problem.what.startswith(
        "count/3, count/4, count/5, count/6, count/7 and 22 more tasks raised KeyError 27 times"
    )


def test_tuples_that_fail_are_counted_between_two_reports_of_the_same_tasks() -> None:
    """A new topology manager learns the tasks one after the other, each with all that it ever counted."""

    def report(count: int, tasks: int = 1) -> TopologyStatus:
        bolt = ComponentStatus("count", "bolt", 1, failed=count, reported_tasks=tasks)
        return replace(STATUS, components=(bolt, ComponentStatus("lines", "spout", 1, failed=count)))

    assert grown(report(5), report(17)) == {"count": 12}
    assert grown(report(5), report(5)) == {}
    assert grown(report(5), report(17, tasks=2)) == {}
    assert grown(report(5), replace(report(17), topology_id="words-2")) == {}
    assert grown(None, report(17)) == {}


@pytest.mark.parametrize(
    ("recorded", "kind", "text", "last"),
    [
        (describe_exit(3), DeathKind.NOT_STARTED, "exit code 3", ""),
        (f"{describe_exit(75)}: disk full", DeathKind.TEMPORARY, "exit code 75", "disk full"),
        (describe_exit(-11), DeathKind.CRASHED, "killed by SIGSEGV", ""),
        (describe_exit(-200), DeathKind.CRASHED, "killed by signal 200", ""),
        (
            "x died and is restarted: killed by SIGTERM",
            DeathKind.SIGNALLED,
            "killed by SIGTERM; who sent it is not known",
            "",
        ),
        (
            BY_KERNEL + ": exit code 9",
            DeathKind.MEMORY,
            "killed by the kernel for memory (limit 1.0 GiB)",
            "exit code 9",
        ),
        ("", DeathKind.UNKNOWN, "no reason is recorded", ""),
        ("cannot be started", DeathKind.UNKNOWN, "cannot be started", ""),
    ],
)
def test_records_are_taken_apart(recorded: str, kind: DeathKind, text: str, last: str) -> None:
    """As the executor writes them."""
    found = death_reason(recorded)
    assert (found.kind, found.text, found.last_line) == (kind, text, last)


def test_a_task_status_with_an_error_alone_is_no_death() -> None:
    """The status keeps the last error for ever."""
    task = TaskStatus(3, "count", 1, "running", 1, 0, "an old error")
    assert explain(facts(status=replace(STATUS, tasks=(task,)))).problems == ()

"""The paths that ask one task, with a client that answers as a test wants."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import cast

import httpx
import pytest

from heron.driver_kit.redaction import add_command_secrets
from heron.errors import AccessError, HeronError, UnreachableError, UsageError
from heron.ipc.documents.traces_table import Trace, TracesTable
from heron.spi.task_memory import MemoryLook, TypeMemory
from heron.spi.task_stacks import StackFrame, TaskStacks, ThreadStack
from heron.spi.tracing import SpanKind, Stamp, StampKind, TraceSpan
from heron_cli.client import Client, LogLine, TaskMemory
from heron_service_tracker.answers.traces_answer import TracesAnswer
from heron_service_tracker.calls.questions import Questions
from heron_service_tracker.http.access import Access
from heron_service_tracker.http.address import Address
from heron_service_tracker.http.application import application
from heron_service_tracker.watches.observations import Observations

TASK = "/api/v1/clusters/near/topologies/words/tasks"
HERON_JSTACK = "/topologies/jstack?cluster=near&environ=prod&topology=words&instance=container_1_count_2"
FRAME = StackFrame("words.py", 3, "Count.process", "user", "self.lock.acquire()")
THREAD = ThreadStack("MainThread", 1, "task", "waits", 0.0, 1.0, "a lock", (FRAME,))
STACKS = TaskStacks("words", "count", 2, 1, 1, 12, "h1", 5.0, (THREAD,))
LINE = LogLine("count/2", "hello")
LONG = LogLine("count/2", "x" * 2_000_000, error="y" * 2_000_000)

Ask = Callable[..., httpx.Response]


def root_span(number: int) -> TraceSpan:
    """A trace without executions, which was acked after `number` milliseconds."""
    emitted = Stamp(StampKind.EMITTED, 1, 10**9, 10**18)
    settled = Stamp(StampKind.SETTLED, 1, 10**9 + number * 10**6, 10**18)
    return TraceSpan(str(number), "r", "", SpanKind.ROOT, "lines", 1, (emitted, settled), outcome="complete")


class OneTask:
    """A client whose only topology has one task, and fails with `error` where that is set."""

    def __init__(self, error: HeronError | None = None, folder: Path = Path("nowhere")) -> None:
        self.error = error
        self.folder = folder
        self.traces_read = 0

    def topology(self, _name: str, timeout_s: float) -> nullcontext[OneTask]:
        """Return the connection, which is this object."""
        assert timeout_s > 0
        return nullcontext(self)

    def stacks(self, task_id: int) -> TaskStacks:
        """Answer."""
        assert task_id == 2
        if self.error:
            raise self.error
        return STACKS

    def memory(self, task_id: int, *, seconds: float) -> TaskMemory:
        """Answer with two types, after one look."""
        if self.error:
            raise self.error
        assert (task_id, seconds) == (2, 0.0)
        look = MemoryLook(0.0, 0.1, 100, 20, None, 40, 1, 1.0)
        types = TypeMemory("list", 3, 180, 0, 0), TypeMemory("words.Window", 2, 5_000, 0, 0)
        return TaskMemory("words", "count", 2, 1, 1, 12, "h1", look, look, 0.0, 0, types, (), (), (), ("no lines",))

    def traces(self) -> TracesTable:
        """Answer."""
        self.traces_read += 1
        if self.error:
            raise self.error
        return TracesTable(tuple(Trace(str(each), (root_span(each),)) for each in range(3)), refused=4)

    def log_folder(self, _name: str, timeout_s: float) -> Path:
        """Answer."""
        assert timeout_s > 0
        if self.error:
            raise self.error
        return self.folder

    def logs(self, _name: str, *, task_id: int, lines: int, search: str, timeout_s: float) -> tuple[LogLine, ...]:
        """Answer with as many lines as there are."""
        assert (task_id, timeout_s > 0) == (2, True)
        return tuple(each for each in (LINE, LINE, LONG) if search in each.text)[-lines:]


@pytest.fixture
def ask(observations: Observations) -> Ask:
    """Asks an application once; `logs` is the choice of the operator."""

    def get(
        path: str, error: HeronError | None = None, *, logs: bool = False, folder: Path = Path("nowhere")
    ) -> httpx.Response:
        async def once() -> httpx.Response:
            client = cast("Client", nullcontext(OneTask(error, folder)))
            questions = Questions(lambda _cluster: client, logs_allowed=logs)
            access = Access(Address("127.0.0.1", 8888))
            app = application(observations, access, asyncio.Event(), None, questions)
            transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8888") as sender:
                return await sender.get(path if path.startswith(("/topologies", "/api")) else TASK + path)

        return asyncio.run(once())

    return get


def test_a_stack_has_the_line_of_the_authors_code(ask: Ask) -> None:
    """The read-only key suffices, so the client is the one that the tracker has."""
    answer = ask("/2/stack")
    assert answer.status_code == 200
    (frame,) = answer.json()["stacks"]["threads"][0]["frames"]
    assert (frame["file"], frame["line"], frame["origin"]) == ("words.py", 3, "user")


@pytest.mark.parametrize("task", ["00000000029", "02", "2" * 11, "0", "-2", "2%20", "\u0662", "2.0"])
def test_a_task_has_one_path(ask: Ask, task: str) -> None:
    """A path that names another task, or none, must not be answered with the data of task 2."""
    answer = ask(f"/{task}/stack")
    assert answer.status_code == 404


def test_the_stack_of_an_instance_is_a_text_as_of_jstack(ask: Ask) -> None:
    """Scripts for Heron Tracker look for a function in it."""
    found = ask(HERON_JSTACK).json()
    assert found["stdout"] == '"MainThread" (task) waits, for a lock\n    at Count.process (words.py, line 3)'
    refused = ask(HERON_JSTACK, UnreachableError("the task does not answer"))
    assert (refused.status_code, refused.json()) == (400, "request failed: the task does not answer")


def test_the_types_of_an_instance_are_a_text_as_of_jmap(ask: Ask) -> None:
    """The largest first. Scripts for Heron Tracker read the columns."""
    path = "/topologies/histo?cluster=near&environ=prod&topology=words&instance=container_1_count_2"
    found = ask(path).json()
    rows = [line.split() for line in found["stdout"].splitlines()]
    assert rows[0] == ["num", "#instances", "#bytes", "class", "name"]
    assert rows[2:] == [["1:", "2", "5000", "words.Window"], ["2:", "3", "180", "list"], ["Total", "5", "5180"]]
    assert (found["command"], found["stderr"]) == ("heron memory words 2 --seconds 0", "no lines")
    refused = ask(path, UnreachableError("the task does not answer"))
    assert (refused.status_code, refused.json()) == (400, "request failed: the task does not answer")


def test_the_slowest_traces_come_first(ask: Ask) -> None:
    """A page shows the waterfall of the first one."""
    traces = TASK.removesuffix("tasks") + "traces"
    found = ask(traces + "?limit=2").json()
    assert [each["trace_id"] for each in found["slowest"]] == ["2", "1"]
    assert (found["summary"]["traces"], found["refused"]) == (3, 4)
    assert found["slowest"][0]["steps"][0]["kind"] == "ack"
    assert ask(traces + "?limit=0").status_code == 400
    assert ask(traces.replace("words", "other")).status_code == 404
    assert ask(traces, UnreachableError("no answer")).status_code == 503


def test_the_traces_are_read_once_for_many_pages() -> None:
    """Each page asks every five seconds, and a read opens a connection."""
    task = OneTask()
    questions = Questions(lambda _cluster: cast("Client", nullcontext(task)))

    async def pages() -> list[TracesAnswer]:
        return await asyncio.gather(*(questions.traces("near", "words", limit) for limit in (1, 2, 3) * 30))

    assert [len(each.slowest) for each in asyncio.run(pages())[:3]] == [1, 2, 3]
    assert task.traces_read == 1


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UnreachableError("the task does not answer"), 503),
        (UsageError("it is not running"), 404),
        (AccessError("other keys"), 403),
    ],
)
def test_a_task_that_does_not_answer_is_a_problem_with_its_reason(ask: Ask, error: HeronError, status: int) -> None:
    """A person learns what to look at next; the tracker itself has not failed."""
    answer = ask("/2/stack", error)
    assert (answer.status_code, answer.json()["detail"]) == (status, str(error))


@pytest.mark.parametrize("path", ["/2/stack", TASK.removesuffix("tasks") + "traces", HERON_JSTACK])
def test_an_error_quotes_no_secret_of_a_profile(ask: Ask, path: str) -> None:
    """A driver that refuses a question may quote its options."""
    add_command_secrets(["zk-password-of-near"])
    answer = ask(path, UnreachableError("no answer from zk://crew:zk-password-of-near@h"))
    assert "zk://crew:(secret)@h" in answer.text


@pytest.mark.parametrize("task", ["9", "0", "-1", "x", "9" * 400, "%00", "²"])
def test_a_task_that_does_not_exist_is_not_asked(ask: Ask, task: str) -> None:
    """A question costs a connection; the status already says which tasks there are."""
    assert ask(f"/{task}/stack").status_code == 404


def test_an_unknown_parameter_is_refused(ask: Ask) -> None:
    """As by all other paths."""
    assert ask("/2/stack?lines=3").status_code == 400
    assert ask("/2/logs?lines=0", logs=True).status_code == 400


def test_logs_are_shown_only_where_the_operator_allows_it(ask: Ask) -> None:
    """The files of a run may be closed to other users of the machine, to whom a loopback address is open."""
    refused = ask("/2/logs")
    assert refused.status_code == 403
    assert "--logs" in refused.json()["detail"]
    shown = ask("/2/logs?search=hell", logs=True)
    assert shown.status_code == 200
    assert [each["text"] for each in shown.json()["items"]] == ["hello", "hello"]


def test_a_line_of_megabytes_is_cut_with_its_length(ask: Ask) -> None:
    """A page asks for hundreds of lines every two seconds."""
    (line,) = ask("/2/logs?lines=1", logs=True).json()["items"]
    assert line["text"] == "x" * 10_000 + "… (2,000,000 characters)"
    assert line["error"].endswith("… (2,000,000 characters)")


def test_a_log_is_sent_whole_as_an_attachment(ask: Ask, tmp_path: Path) -> None:
    """Its older parts too, byte for byte; a browser keeps it, and never shows it as a page of this address."""
    files = TASK.replace("tasks", "log-files")
    for name, text in (("count-2.out.1", b"<script>\xff\n"), ("count-2.out", b"two\n"), ("stmgr-1.log", b"{}\n")):
        (tmp_path / name).write_bytes(text)
    listed = ask(f"{files}?task=2", logs=True, folder=tmp_path).json()["items"]
    assert listed == [{"name": "count-2.out", "size_bytes": 14}]
    assert len(ask(files, logs=True, folder=tmp_path).json()["items"]) == 2
    (of_process,) = ask(f"{files}?process=stmgr-1", logs=True, folder=tmp_path).json()["items"]
    assert of_process["name"] == "stmgr-1.log"
    sent = ask(f"{files}/count-2.out", logs=True, folder=tmp_path)
    assert (sent.status_code, sent.content) == (200, b"<script>\xff\ntwo\n")
    assert sent.headers["content-disposition"] == "attachment; filename*=UTF-8''words-count-2.out"
    assert sent.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("name", ["count-2.out.1", "..%2Fcount-2.out", "%2Fetc%2Fpasswd", "notes.txt", "count-3.out"])
def test_only_a_log_of_the_folder_is_sent(ask: Ask, tmp_path: Path, name: str) -> None:
    """A request names it, and the operator decides whether logs are sent at all."""
    files = TASK.replace("tasks", "log-files")
    for each in ("count-2.out", "count-2.out.1", "notes.txt"):
        (tmp_path / each).write_text("x", encoding="utf-8")
    assert ask(f"{files}/{name}", logs=True, folder=tmp_path).status_code == 404
    refused = [ask(f"{files}/count-2.out", folder=tmp_path), ask(files, folder=tmp_path)]
    assert [each.status_code for each in refused] == [403, 403]
    away = ask(files, UsageError("the logs of topology 'words' are not here"), logs=True)
    assert (away.status_code, away.json()["detail"]) == (404, "the logs of topology 'words' are not here")

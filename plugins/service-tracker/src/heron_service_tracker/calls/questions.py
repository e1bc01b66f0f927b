"""Questions that a request sends to a task, a topology, a store or files: a stack, logs, traces, an explanation.

Everything else is answered from memory. A question waits for a topology, so it runs in a thread with its own client.
Few run at a time: requests that are too many wait here, and delay no other request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace as replaced

from heron.clock import monotonic_s
from heron_cli.client import WholeLog, process_logs, stored_letters, whole_log, whole_logs
from heron_service_tracker.answers.checkpoint_answers import (
    StoredCheckpoints,
    StoredCheckpointsAnswer,
    stored_answer,
    stored_checkpoints,
)
from heron_service_tracker.answers.flow_answers import LogFileItem, LogFilesAnswer, LogsAnswer, StackAnswer
from heron_service_tracker.answers.letters_answer import DeadLettersAnswer, letters_answer, shown_in
from heron_service_tracker.answers.traces_answer import TracesAnswer, traces_answer
from heron_service_tracker.calls.daemon_thread import in_daemon
from heron_service_tracker.calls.explain_command import ExplainCommand, ExplanationAnswer
from heron_service_tracker.calls.shared_answers import SharedAnswers
from heron_service_tracker.calls.task_observers import OpenCluster, TaskObservers
from heron_service_tracker.observed.observed import age_s
from heron_service_tracker.request_errors import NotYetKnownError

__all__ = ["Questions"]

_AT_A_TIME = 4  # a task answers in 0.1 s; each question opens a client, and thus connections
_EXPLAINED = 2  # topologies at a time: each is a process of half a second of processor time
_TRACED = 100  # topologies; four of them are read at a time
_TRACES_KEPT_S = 4.0  # a page asks every 5 s, and a hundred pages cost what one page costs
_TIMEOUT_S = 5.0  # as `heron stack`: a task that does not answer by then is held by native code

_STORED = 20  # checkpoints: each is a read of the store
_STORES_AT_A_TIME = 4  # a store that does not answer holds its place for a minute, and must hold no other question
_STORE_S = 10.0  # a store that answers takes a second for a list and its manifests
_STORED_KEPT_S = 4.0  # a page asks every 5 s
_LETTERS = 100  # of a topology, at most: what a page shows
_LONGEST = 10_000  # characters of a line; a printed value may have megabytes, and a page shows hundreds of lines

T = TypeVar("T")


class Questions:
    """Asks tasks. Each method raises what the client raises. The operator chooses whether logs and tuples are shown."""

    def __init__(
        self,
        open_cluster: OpenCluster,
        *,
        logs_allowed: bool = False,
        tuples_allowed: bool = False,
        explain: ExplainCommand | None = None,
    ) -> None:
        self._open_cluster = open_cluster
        command = explain or ExplainCommand(lambda profile: ("--profile", profile))
        self._explanations = SharedAnswers(
            lambda cluster, topology: asyncio.to_thread(command.answer, cluster, topology), at_a_time=_EXPLAINED
        )
        self.logs_allowed = logs_allowed
        self.observers = TaskObservers(open_cluster, tuples_allowed=tuples_allowed)
        self._places = asyncio.Semaphore(_AT_A_TIME)
        self._store_places = asyncio.Semaphore(_STORES_AT_A_TIME)
        self._tables = SharedAnswers(
            lambda cluster, topology: self._ask(lambda: self._traces(cluster, topology)),
            at_a_time=_TRACED,
            kept_s=_TRACES_KEPT_S,
        )

        self._letters = SharedAnswers(
            lambda cluster, topology: self._ask(lambda: self._read_letters(cluster, topology)),
            at_a_time=_TRACED,
            kept_s=_TRACES_KEPT_S,
        )

        self._stored = SharedAnswers(
            self._ask_store,
            at_a_time=_TRACED,
            kept_s=_STORED_KEPT_S,
        )

    async def stack(self, cluster: str, topology: str, task_id: int) -> StackAnswer:
        """Return the threads of a task."""
        return await self._ask(lambda: self._stack(cluster, topology, task_id))

    async def logs(self, cluster: str, topology: str, of: int | str, lines: int, search: str) -> LogsAnswer:
        """Return the last lines of a task's or a process's logs that contain a text ("" is in all).

        The files are those of this machine. A process is named by its container, such as ``stmgr-1``.
        """
        return await self._ask(lambda: self._logs(cluster, topology, of, lines, search))

    async def log_files(self, cluster: str, topology: str, task_id: int, process: str) -> LogFilesAnswer:
        """Return the logs of a topology on this machine, or those of one task (not 0) or process (not "")."""
        found = await self._in_folder(cluster, topology, lambda folder: whole_logs(folder, task_id or None, process))
        return LogFilesAnswer(tuple(LogFileItem(each.name, each.size_bytes) for each in found))

    async def log_file(self, cluster: str, topology: str, name: str) -> WholeLog:
        """Return the log of that name on this machine."""
        return await self._in_folder(cluster, topology, lambda folder: whole_log(folder, name))

    async def traces(self, cluster: str, topology: str, limit: int) -> TracesAnswer:
        """Return where the time of traced tuples goes, with at most `limit` traces."""
        read_at_s, answer = await self._tables.get(cluster, topology)
        return replaced(answer, slowest=answer.slowest[:limit], age_s=age_s(read_at_s, monotonic_s()))

    async def letters(self, cluster: str, topology: str, limit: int, sources: Collection[str]) -> DeadLettersAnswer:
        """Return the newest dead letters in the files of this machine, with the values of these sources."""
        read_at_s, answer = await self._letters.get(cluster, topology)
        return replaced(shown_in(answer, limit, sources), age_s=age_s(read_at_s, monotonic_s()))

    async def stored_checkpoints(self, cluster: str, topology: str, wanted: str) -> StoredCheckpointsAnswer:
        """Return the newest checkpoints in the store, with the tasks of the wanted one ("": the newest).

        Raises:
            NotYetKnownError: when the store does not answer in time.
        """
        try:
            async with asyncio.timeout(_STORE_S):
                read_at_s, found = await self._stored.get(cluster, topology)
        except TimeoutError as error:
            msg = f"the checkpoint store of {cluster!r} has not answered within {_STORE_S:g} s; ask again later"
            raise NotYetKnownError(msg) from error
        return replaced(stored_answer(found, wanted), age_s=age_s(read_at_s, monotonic_s()))

    async def explanation(self, cluster: str, topology: str) -> ExplanationAnswer:
        """Return what suffers in a topology, and why; it takes some seconds. Few topologies are explained at a time."""
        return await self._explanations.get(cluster, topology)

    async def _ask(self, question: Callable[[], T]) -> T:
        async with self._places:
            return await asyncio.to_thread(question)

    async def _in_folder(self, cluster: str, topology: str, question: Callable[[Path], T]) -> T:
        def ask() -> T:
            with self._open_cluster(cluster) as client:
                return question(client.log_folder(topology, timeout_s=_TIMEOUT_S))

        return await self._ask(ask)

    async def _ask_store(self, cluster: str, topology: str) -> tuple[float, StoredCheckpoints]:
        async with self._store_places:
            return await in_daemon(lambda: self._read_checkpoints(cluster, topology), "checkpoint-store")

    def _stack(self, cluster: str, topology: str, task_id: int) -> StackAnswer:
        with self._open_cluster(cluster) as client, client.topology(topology, timeout_s=_TIMEOUT_S) as remote:
            return StackAnswer(remote.stacks(task_id))

    def _traces(self, cluster: str, topology: str) -> tuple[float, TracesAnswer]:
        with self._open_cluster(cluster) as client, client.topology(topology, timeout_s=_TIMEOUT_S) as remote:
            return monotonic_s(), traces_answer(remote.traces())

    def _read_letters(self, cluster: str, topology: str) -> tuple[float, DeadLettersAnswer]:
        with self._open_cluster(cluster) as client:
            letters = stored_letters(client.log_folder(topology, timeout_s=_TIMEOUT_S))
        return monotonic_s(), letters_answer(letters, _LETTERS)

    def _read_checkpoints(self, cluster: str, topology: str) -> tuple[float, StoredCheckpoints]:
        with self._open_cluster(cluster) as client:
            return monotonic_s(), stored_checkpoints(client.checkpoints(topology, _STORED, within_s=_STORE_S / 2))

    def _logs(self, cluster: str, topology: str, of: int | str, lines: int, search: str) -> LogsAnswer:
        with self._open_cluster(cluster) as client:
            if isinstance(of, int):
                found = client.logs(topology, task_id=of, lines=lines, search=search, timeout_s=_TIMEOUT_S)
            else:
                found = process_logs(client.log_folder(topology, timeout_s=_TIMEOUT_S), of, lines, search)
        return LogsAnswer(tuple(replace(each, text=_cut(each.text), error=_cut(each.error)) for each in found))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text):,} characters)"

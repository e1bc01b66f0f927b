"""Questions that wait for others delay no question that does not."""

from __future__ import annotations

import asyncio
import gc
import threading
from contextlib import nullcontext
from types import SimpleNamespace
from typing import cast

import pytest

from heron_cli.client import Client, ListedCheckpoint
from heron_service_tracker.answers.flow_answers import StackAnswer
from heron_service_tracker.calls import questions
from heron_service_tracker.calls.questions import Questions
from heron_service_tracker.request_errors import NotYetKnownError


def test_a_store_that_does_not_answer_delays_no_other_question(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its requests end after a time, and a topology is asked meanwhile. The error that comes at last is no log line."""
    monkeypatch.setattr(questions, "_STORE_S", 0.2)
    answers = threading.Event()

    def checkpoints(_name: str, _most: int, *, within_s: float) -> tuple[ListedCheckpoint, ...]:
        assert within_s == 0.1
        assert answers.wait(30.0)
        msg = "the store is away"
        raise OSError(msg)

    remote = SimpleNamespace(stacks=lambda task_id: task_id)
    client = SimpleNamespace(checkpoints=checkpoints, topology=lambda _name, timeout_s: nullcontext(remote))

    async def run() -> tuple[list[object], object]:
        asked = Questions(lambda _: cast("Client", nullcontext(client)))
        waiting = [asked.stored_checkpoints("near", f"words-{number}", "") for number in range(4)]
        stored = await asyncio.gather(*waiting, return_exceptions=True)
        try:
            async with asyncio.timeout(10.0):  # less than the store takes
                stack = await asked.stack("near", "words", 3)
        finally:
            answers.set()
        for each in threading.enumerate():
            if each.name == "checkpoint-store":
                await asyncio.to_thread(each.join)
        return list(stored), stack

    stored, stack = asyncio.run(run())
    assert [type(each) for each in stored] == [NotYetKnownError] * 4
    assert "the checkpoint store of 'near' has not answered within 0.2 s" in str(stored[0])
    assert isinstance(stack, StackAnswer)
    gc.collect()  # asyncio logs an error that nobody has read when its future is gone
    assert caplog.text == ""

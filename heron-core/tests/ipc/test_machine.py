"""What a process takes from its machine."""

from __future__ import annotations

import threading

from heron.ipc.machine import Machine


def test_threads_of_authors_are_told_from_those_of_the_engine() -> None:
    """A task whose author has threads looks for what they have emitted. Pytest may have threads here, too."""
    machine, end = Machine(), threading.Event()
    before = machine.has_foreign_threads()
    machine.start_thread("own", end.wait)
    assert machine.has_foreign_threads() == before
    foreign = threading.Thread(target=end.wait)
    foreign.start()
    assert machine.has_foreign_threads()
    end.set()
    foreign.join()

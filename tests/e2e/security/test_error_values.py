"""Values of tuples in the errors of a run: where `heron inspect` is refused, no command and no page shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron_testing.waiting import wait_until
from tracker_process import TrackerProcess

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

_PLACE = "/api/v1/clusters/local/topologies/logins"
_COMMANDS = ("status logins --json", "explain logins")


def test_errors_have_values_only_where_tuples_may_be_seen(sandbox: Sandbox) -> None:
    """The errors are in the output, the logs, `heron status` and the tracker, which need no key for data.

    With `topology.inspect.tuples` they have the values, but not that of a field with the name of a secret.
    """
    run = sandbox.start("logins.py")
    tracker = TrackerProcess(sandbox, "--logs")
    for text in (
        "LookupError: the first line",
        "cannot be encoded",
        "emit of 3 values",
        "emit to unknown stream, a str; declared: 'default'",
        "report_error of a str; give an exception",
        "(hidden): topology.inspect.tuples shows values",
    ):
        run.printed(text)
    wait_until(lambda: tracker.state("local", "logins"), 30.0, "the topology at the tracker")
    wait_until(lambda: "the first line" in str(tracker.get(f"{_PLACE}/exceptions")), 30.0, "the error at the tracker")
    shown = [sandbox.output_of(*each.split()) for each in _COMMANDS]
    shown += [str(tracker.get(f"{_PLACE}{each}")) for each in ("", "/exceptions", "/events")]
    assert any("values=(hidden)) raised LookupError: the first line" in each for each in shown)
    assert "a value of type generator cannot be encoded" in run.all_output
    assert "emit of 3 values, the stream declares 2 fields (name, password)" in run.all_output
    for each in (*shown, run.all_output):
        assert "ada-lovelace" not in each
        assert "hunter2" not in each

    sandbox.output_of("update", "logins", "--runtime-config", "topology.inspect.tuples=true")
    (run.out / "other").touch()
    run.printed("LookupError: the other line")
    assert "values={'name': 'ada-lovelace', 'password': (hidden)}) raised LookupError: the other line" in run.all_output
    (run.out / "stop").touch()
    run.finished()

"""A bolt in a real JVM on its task thread, which gets and emits whole batches; the test plays its stream manager.

`test_runtime_jvm.py` runs in the simulator, where bolts get single tuples.
"""

from __future__ import annotations

import pytest
from jvm_topologies import class_path

from heron.instance.bolt_runner import BoltRunner
from heron_runtime_jvm import JvmArguments, JvmBolt
from heron_runtime_jvm.jvm_settings import JVM_KEY, jvm_settings
from heron_testing_servers.storm import StormClient
from parts import end_marker, tracked_rest
from parts.tracked_rest import BOLT, SPOUT, Around, Rest, first_time, sent_end, settled, tracked

pytestmark = pytest.mark.leaks_nothing

START_S = 120.0  # on a busy machine


@pytest.fixture
def config(storm_client: StormClient, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """That of a bolt which emits each value twice in one."""
    monkeypatch.setattr(tracked_rest, "DEADLINE_S", START_S)
    path = class_path(storm_client.jars, "Words.java", "Probes.java")
    arguments = JvmArguments(
        java_class="demo.Probes$Twice", class_path=path, outputs=["v"], timeout_s=START_S, max_pending=1
    )
    settings = jvm_settings(JvmBolt, arguments, "bolt")
    return {JVM_KEY: settings.as_config()}


def test_batches_pass_and_rows_fail_alone(config: dict[str, object], capsys: pytest.CaptureFixture[str]) -> None:
    """Acks are ranges of ids. A text that is not UTF-8 costs its batch only."""
    rest = Rest("bolt", first_time("ack"), sent_end, config=config)
    garbled = tracked(500, "abc").replace(b"abc", b"a\xffc")
    rest.put(tracked(10, *range(100)), garbled, tracked(600, "d", "e"), end_marker((BOLT,), SPOUT))
    BoltRunner(rest.task, Around(rest), JvmBolt).run(ended=False)
    emitted = [each for each in rest.events if isinstance(each, int | str) and each != "END"]
    assert emitted == [*[2 * each for each in range(100) if each != 7], "dd", "ee"]
    assert settled(rest) == [*[10 + each for each in range(100) if each != 7], 600, 601]
    assert settled(rest, "failed") == [17, 500]
    shown = capsys.readouterr().err
    assert "seven is refused" in shown
    assert "is not UTF-8" in shown


def test_acks_leave_and_the_task_stops_while_the_jvm_takes_nothing(config: dict[str, object]) -> None:
    """The last batch waits for room, and the JVM never gives it."""
    rest = Rest("bolt", first_time("ack"), lambda rest: settled(rest) == [10], config=config)
    rest.put(tracked(10, "a"), tracked(20, "wait"), tracked(30, "b"))
    BoltRunner(rest.task, Around(rest), JvmBolt).run(ended=False)
    assert set(rest.events) == {"aa", ("acked", 10)}

"""Engine settings: keys there and back, and refusals."""

from __future__ import annotations

import pytest

from heron.errors import ConfigError
from heron.kernel.settings import EngineSettings, setting_docs


def test_keys_there_and_back() -> None:
    """Settings travel to other processes as keys."""
    chosen = EngineSettings.from_keys({"heron.heartbeat.s": 2, "topology.on.failure": "stop"})
    assert (chosen.heartbeat_s, chosen.on_failure) == (2.0, "stop")
    assert EngineSettings.from_keys(chosen.to_keys()) == chosen


def test_defaults_are_acceptable() -> None:
    """A default outside its own range would break everybody who copies it into a profile."""
    assert EngineSettings.from_keys(EngineSettings().to_keys()) == EngineSettings()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("heron.hartbeat.s", 1, r"engine\.heron\.hartbeat\.s: unknown key \(nearest: 'heron\.heartbeat\.s'\)"),
        ("heron.heartbeat.s", "1", "'1' is not of type float; give one in s"),
        ("heron.heartbeat.s", True, "True is not of type float"),
        ("heron.instance.queue.target.s", float("inf"), "inf s is no finite number; give one in s"),
        ("heron.silence.s", float("nan"), "nan s is no finite number"),
        ("heron.instance.queue.target.s", 0.0, "0.0 s is below the least value, 0.001 s"),
        ("heron.instance.batch.rows", 1.5, "1.5 is not of type int"),
        ("heron.instance.batch.rows", 0, "0 tuples is below the least value, 1 tuples"),
        ("heron.stmgr.low.watermark.bytes", 8 * 1024 * 1024, "is not below heron.stmgr.high.watermark.bytes"),
        ("topology.on.failure", "explode", "'explode' is neither 'restart' nor 'stop'"),
    ],
)
def test_unacceptable_value_is_refused(key: str, value: object, message: str) -> None:
    """Key, value, limit and unit stand in the message."""
    with pytest.raises(ConfigError, match=message):
        EngineSettings.from_keys({key: value})


def test_every_setting_is_documented() -> None:
    """The documentation is made from these."""
    assert all(meaning for _, _, _, meaning in setting_docs())

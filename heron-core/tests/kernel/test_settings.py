"""The engine settings: conversion to keys and back, and errors."""

from __future__ import annotations

from dataclasses import fields

import pytest

from heron.driver_kit.process_starter import PROCESS_START
from heron.errors import ConfigError
from heron.kernel.settings import EngineSettings


def test_settings_become_keys_and_settings_again() -> None:
    """Settings travel to other processes as keys."""
    chosen = EngineSettings.from_keys({"heron.heartbeat.s": 2, "topology.on.failure": "stop"})
    assert (chosen.heartbeat_s, chosen.on_failure) == (2.0, "stop")
    assert EngineSettings.from_keys(chosen.to_keys()) == chosen


def test_defaults_are_valid() -> None:
    """Users copy defaults into profiles, so each default must be in its own range."""
    assert EngineSettings.from_keys(EngineSettings().to_keys()) == EngineSettings()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("heron.hartbeat.s", 1, r"engine\.heron\.hartbeat\.s: unknown key \(nearest: 'heron\.heartbeat\.s'\)"),
        ("heron.heartbeat.s", "1", "'1' is not of type float; give one in s"),
        ("heron.heartbeat.s", True, "True is not of type float"),
        ("heron.instance.queue.target.s", float("inf"), "inf s is not a finite number; give one in s"),
        ("heron.silence.s", float("nan"), "nan s is not a finite number"),
        ("heron.instance.queue.target.s", 0.0, "0.0 s is below the minimum, 0.001 s"),
        ("heron.instance.batch.rows", 1.5, "1.5 is not of type int"),
        ("heron.instance.batch.rows", 0, "0 tuples is below the minimum, 1 tuples"),
        ("heron.stmgr.low.watermark.bytes", 8 * 1024 * 1024, "is not below heron.stmgr.high.watermark.bytes"),
        ("topology.on.failure", "explode", "'explode' is neither 'restart' nor 'stop'"),
    ],
)
def test_invalid_value_is_refused(key: str, value: object, message: str) -> None:
    """The message has the key, the value, the limit and its unit."""
    with pytest.raises(ConfigError, match=message):
        EngineSettings.from_keys({key: value})


def test_schedulers_know_the_setting_of_process_starts() -> None:
    """They may not import the settings; and the settings, which every process reads, import no start of processes."""
    assert EngineSettings.from_keys({PROCESS_START: "exec"}).process_start == "exec"


def test_every_setting_is_documented() -> None:
    """docs/configuration.md shows the meaning of each setting."""
    assert all(each.metadata["meaning"] for each in fields(EngineSettings))

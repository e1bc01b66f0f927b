"""Serializers that a topology selects, between processes."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

VALUES = (None, (1, "two"), Decimal("1.10"), {"a": [1.5]}, Fraction(1, 3), b"bytes")
EVERYTHING = [[number, repr(value)] for number, value in enumerate(VALUES)]
NEUTRAL = [row for row in EVERYTHING if row[0] != 4]


@pytest.mark.parametrize("mode", ["ATMOST_ONCE", pytest.param("ATLEAST_ONCE", marks=pytest.mark.guarantee)])
def test_a_bolt_reads_streams_of_several_serializers(sandbox: Sandbox, mode: str) -> None:
    """Each component selects its own. A value that the serializer cannot encode fails alone, and its field is named.

    Guarantee: each component selects its serializer, and a refused value fails alone.
    """
    run = sandbox.run("mixed_values.py", args=("--mode", mode))
    report = run.finished()
    (rows,) = run.results("record").values()
    for component, wanted in (("plain", EVERYTHING), ("neutral", NEUTRAL)):
        assert sorted(row[1:] for row in rows if row[0] == component) == wanted
    assert report.components["neutral"].failed >= 1  # and its root, if there is one
    output = [line for line in run.stderr.splitlines() if "cannot be encoded" in line and "heron: error:" in line]
    assert len(output) == 1, run.all_output
    assert "component 'neutral'" in output[0]
    assert "field 'value': a value of type Fraction cannot be encoded (MsgpackSerializer)" in output[0]


@pytest.mark.starts_nothing
def test_the_simulator_refuses_the_same_values_as_processes(sandbox: Sandbox) -> None:
    """Without this, a topology could work in the simulator and fail in its first real run."""
    run = sandbox.run("mixed_values.py", "--simulate", "--set", "topology.serializer=msgpack")
    run.finished()
    (rows,) = run.results("record").values()
    assert sorted(row[1:] for row in rows) == sorted(NEUTRAL * 2)


@pytest.mark.starts_nothing
def test_a_serializer_that_is_not_installed_is_refused_before_anything_starts(sandbox: Sandbox) -> None:
    """The error names the component, the value and the installed drivers, and suggests no misspelt package."""
    run = sandbox.run("mixed_values.py", args=("--neutral", "msgpak"))
    assert run.process.returncode == 2, run.all_output
    assert "component 'neutral': topology.serializer: no serializer driver 'msgpak' is installed" in run.stderr
    assert "(nearest: 'msgpack')" in run.stderr
    assert "pip install" not in run.stderr
    assert sandbox.remaining() == []

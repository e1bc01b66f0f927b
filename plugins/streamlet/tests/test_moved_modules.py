"""Values that were stored before this package had rooms name former paths. Their classes are the present ones."""

from __future__ import annotations

import base64
import importlib
import pickle
import sys

import pytest

from heron_streamlet import KeyedWindow, Window
from heron_streamlet.moved_modules import MOVED
from heron_streamlet.plan.operators import Windowed
from heron_streamlet.plan.stages import Stage
from heron_streamlet.topology.stage_bolts import WindowStageBolt
from heron_streamlet.windowing.keyed_operators import WindowFold

STORED_STATE = b"""(lp0
ccopy_reg
_reconstructor
p1
(cheron_streamlet.window
KeyedWindow
p2
c__builtin__
tuple
p3
(Va
p4
g1
(cheron_streamlet.window
Window
p5
g3
(I1
I2
tp6
tp7
Rp8
tp9
tp10
Rp11
a."""
"""A list with ``KeyedWindow("a", Window(1, 2))``, as the first version saved it in a checkpoint."""

STORED_STAGE = (
    "gAWV2wEAAAAAAACMFmhlcm9uX3N0cmVhbWxldC5zdGFnZXOUjAVTdGFnZZSTlCmBlF2UKIwVaGVyb25fc3RyZWFtbGV0LmdyYXBolIwETm9kZZST"
    "lCmBlF2UKEsEjBVjb3VudGJ5a2V5YW5kd2luZG93LTGUjBloZXJvbl9zdHJlYW1sZXQub3BlcmF0b3JzlIwIV2luZG93ZWSUk5QpgZRdlCiMH2hl"
    "cm9uX3N0cmVhbWxldC5rZXllZF9vcGVyYXRvcnOUjApXaW5kb3dGb2xklJOUKYGUXZQojBZoZXJvbl9zdHJlYW1sZXQud2luZG93lIwNU2xpZGlu"
    "Z1dpbmRvd5STlCmBlF2UKIlLAEqAlpgASoCWmABlYowUaGVyb25fc3RyZWFtbGV0LmZvbGSUjAVDb3VudJSTlCmBlF2UYohlYmgYjBNjb3VudGJ5"
    "a2V5YW5kd2luZG93lIlOZWJoBYwFSW5wdXSUk5QpgZRdlChLA4wHcmVzdWx0c5RlYoWUSwGMCG9sZC5weTo2lIiJZWJoCGgHKYGUXZQoSwWMBWxv"
    "Zy0xlGgLjANMb2eUk5QpgZRdlGJoISmBlF2UKEsEaCRlYoWUSwGMCG9sZC5weTo2lIiJZWKGlCmJSwBlYn2UhpQu"
)
"""A stage with its windows, as the first version stored it in a topology: counts by key and window, and a log."""


@pytest.fixture(autouse=True)
def _not_imported_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A path warns when it is imported first, and whether that was in another test must not count."""
    for path in MOVED:
        monkeypatch.delitem(sys.modules, path, raising=False)


@pytest.mark.filterwarnings("ignore:.*has moved to:DeprecationWarning")
def test_a_stored_value_has_the_present_classes() -> None:
    """A later run may go on from a checkpoint of the former version."""
    (found,) = pickle.loads(STORED_STATE)  # written above
    assert found == KeyedWindow("a", Window(1, 2))
    assert type(found) is KeyedWindow


@pytest.mark.filterwarnings("ignore:.*has moved to:DeprecationWarning")
def test_a_stored_stage_runs_in_the_present_classes() -> None:
    """A container that restarts loads the version that is installed then."""
    stage, _ = pickle.loads(base64.b64decode(STORED_STAGE))  # written above
    assert type(stage) is Stage
    assert stage.line() == "countbykeyandwindow-1-to-log-1 x 1: countbykeyandwindow-1 log-1"
    assert isinstance(stage.head.operator, Windowed)
    assert type(stage.head.operator.operator) is WindowFold
    assert vars(importlib.import_module("heron_streamlet.stage_bolts"))["WindowStageBolt"] is WindowStageBolt

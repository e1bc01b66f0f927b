"""Columns without pyarrow: an error that says what to install; records need nothing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable

import pytest

from heron.errors import UsageError
from heron_streamlet import Builder, Items


@pytest.fixture
def _without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    needs = ("heron_streamlet.arrow", "heron_streamlet.columns", "heron_streamlet.api.column_operators")
    for name in [name for name in sys.modules if name.startswith(needs)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)


@pytest.mark.usefixtures("_without_pyarrow")
@pytest.mark.parametrize(
    "use",
    [
        lambda: Builder().new_columns(Items([])),
        lambda: Builder().new_source(Items([])).to_columns({}),
        lambda: importlib.import_module("heron_streamlet.columns"),
        lambda: importlib.import_module("heron_streamlet.arrow.steps"),  # as a task does that unpickles a stage
    ],
)
def test_the_error_names_the_remedy(use: Callable[[], object]) -> None:
    with pytest.raises(UsageError, match="pip install"):
        use()

"""Loading by reference, as role processes do: without discovery."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Self

import pytest

from heron.driver_kit.loading import checked_driver, contract_versions, deprecation, load_object, open_driver
from heron.errors import ConfigError, PluginError
from heron.spi import metricsink
from heron.spi.driver import DriverRef
from heron.spi.metricsink import MetricsRecord, MetricsSink


class Sink(MetricsSink):
    """A driver that does nothing; an option can make it fail."""

    spi_version: ClassVar[int] = 1

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        if failure := options.get("fail"):
            assert isinstance(failure, Exception)
            raise failure
        return cls()

    def process(self, record: MetricsRecord) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> str:
    """A name under which this file can be imported."""
    monkeypatch.setitem(sys.modules, "sinks_under_test", sys.modules[__name__])
    return "sinks_under_test"


def test_driver_is_opened_with_its_options(here: str) -> None:
    """The driver gets the options of its reference."""
    assert isinstance(open_driver(DriverRef("metricsink", "x", f"{here}:Sink", {}), MetricsSink), Sink)


def test_open_must_return_a_driver(here: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A forgotten return would show much later, as a call of None."""
    monkeypatch.setattr(Sink, "open", classmethod(lambda _cls, _options: None))
    with pytest.raises(PluginError, match=r"metricsink driver 'x' .*: open returned a NoneType; it must return"):
        open_driver(DriverRef("metricsink", "x", f"{here}:Sink", {}), MetricsSink)


def test_refused_options_are_a_configuration_error(here: str) -> None:
    """The user gets the unchanged message of the driver."""
    ref = DriverRef("metricsink", "x", f"{here}:Sink", {"fail": ConfigError("metricsink.a: unknown key")})
    with pytest.raises(ConfigError, match=r"^metricsink\.a: unknown key$"):
        open_driver(ref, MetricsSink)


def test_foreign_exception_in_open_is_translated(here: str) -> None:
    """A command prints a traceback for exceptions that are not a HeronError."""
    ref = DriverRef("metricsink", "x", f"{here}:Sink", {"fail": ValueError("no")})
    with pytest.raises(PluginError, match=r"metricsink driver 'x' .* does not open: ValueError: no"):
        open_driver(ref, MetricsSink)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("nonsense", "not of the form 'module:Name'"),
        (":x", "not of the form 'module:Name'"),
        ("no_such_module_at_all:x", "does not import: ModuleNotFoundError"),
        ("heron.errors:NoSuch", "module 'heron.errors' has no 'NoSuch'"),
        ("heron.errors:HeronError.no", "has no 'HeronError.no'"),
    ],
)
def test_entry_that_cannot_be_loaded_is_explained(entry: str, message: str) -> None:
    """An entry comes from another process or from a plugin; the message names it and the cause."""
    with pytest.raises(PluginError, match=message):
        load_object(entry)


def test_older_version_of_a_contract_loads_with_a_warning(
    here: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An older plugin continues to work, and the warning names the remedy."""
    monkeypatch.setattr(metricsink, "SPI_VERSION", 2)
    assert isinstance(open_driver(DriverRef("metricsink", "x", f"{here}:Sink", {}), MetricsSink), Sink)
    assert "version 1 of its contract, which is deprecated; this core supports versions 1 to 2" in caplog.text
    assert "pip install -U heron-metricsink-x" in caplog.text


@pytest.mark.parametrize(("versions", "upgraded"), [((2, 3), "heron-metricsink-x"), ((0, 0), "heron-core")])
def test_version_outside_the_supported_range_is_refused(
    monkeypatch: pytest.MonkeyPatch, versions: tuple[int, int], upgraded: str
) -> None:
    """The message names the side to upgrade."""
    oldest, newest = versions
    monkeypatch.setattr(metricsink, "OLDEST_SPI_VERSION", oldest)
    monkeypatch.setattr(metricsink, "SPI_VERSION", newest)
    with pytest.raises(PluginError, match=f"written for version 1 .* `pip install -U {upgraded}`") as refused:
        checked_driver(Sink, MetricsSink, "sink 'x'", "heron-metricsink-x")
    assert ("docs/plugins.md says what changed" in str(refused.value)) == (upgraded != "heron-core")


def test_newest_version_of_a_contract_is_not_deprecated() -> None:
    """The newest version loads without a warning."""
    assert deprecation(Sink, MetricsSink, "sink 'x'", "heron-metricsink-x") == ""
    assert Sink.spi_version == contract_versions(MetricsSink)[-1]


def test_nested_names_are_found() -> None:
    """A driver may be a nested class."""
    assert load_object("heron.spi.metricsink:MetricKind.GAUGE") is load_object("heron.spi.metricsink:MetricKind.GAUGE")


def test_role_processes_import_no_discovery_libraries() -> None:
    """Each task of each topology pays for the imports of its process."""
    heavy = ["stevedore", "pluggy", "yaml", "click", "rich", "importlib.metadata", "subprocess", "socket", "asyncio"]
    modules = (
        "heron.driver_kit.loading, heron.driver_kit.parent_process, heron.driver_kit.log, heron.kernel.observer_threads"
    )
    script = f"import sys, {modules}; print([each for each in {heavy} if each in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path}; {script}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


OLD = """
from heron.spi.metricsink import {lost}
class Other:
    spi_version = 7
class Old(MetricsSink):
    '''A class with a docstring.'''

    spi_version: ClassVar[int] = {version}
class Later:
    spi_version = 8
"""


@pytest.mark.parametrize(
    ("version", "message"),
    [(0, r"written for version 0 .* supports version 1; .* docs/plugins\.md"), (1, "does not import: ImportError")],
)
def test_a_driver_that_misses_a_name_is_refused_by_the_version_in_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, message: str
) -> None:
    """Its import fails before anybody sees the version; the name that it misses would explain nothing."""
    package = tmp_path / f"old_sinks_{version}"
    package.mkdir()
    (package / "__init__.py").write_text("from .driver import Old\n")
    (package / "driver.py").write_text(OLD.format(lost="NoSuchName", version=version))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PluginError, match=message):
        open_driver(DriverRef("metricsink", "old", f"{package.name}.driver:Old"), MetricsSink)

"""Discovery of drivers: the drivers that are found, those that are refused, and the errors."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from heron.driver_kit.loading import contract_version
from heron.errors import MissingDriverError, PluginError
from heron.spi.families import FAMILIES
from heron_cli.catalog.drivers import SHIPPED, Drivers, stdout_to_stderr
from heron_cli.main import heron

if TYPE_CHECKING:
    from heron_testing.builders.distributions import Install

SINK = """
from heron.spi.metricsink import MetricsSink

class It(MetricsSink):
    spi_version = {version}
    capabilities = frozenset({{"events"}})

    @classmethod
    def open(cls, options):
        return cls()

    def process(self, record): ...
    def flush(self): ...
    def close(self): ...
"""
GOOD = SINK.format(version=1)
GROUP = "heron.metricsink"
WITHIN_S = 30.0


def test_installed_driver_becomes_a_reference(install: Install) -> None:
    """Another process needs only the reference; options are passed unchanged."""
    module = install("heron-metricsink-mine", GROUP, "mine", GOOD)
    ref = Drivers().resolve("metricsink", "mine", {"a": 1})
    assert (ref.family, ref.name, ref.entry, ref.options) == ("metricsink", "mine", f"{module}:It", {"a": 1})


def test_newly_installed_driver_is_found(install: Install) -> None:
    """The cache of stevedore on disk would hide it, so discovery bypasses the cache."""
    with pytest.raises(PluginError):
        Drivers().resolve("metricsink", "mine", {})
    install("heron-metricsink-mine", GROUP, "mine", GOOD)
    assert Drivers().resolve("metricsink", "mine", {}).name == "mine"


def test_the_error_for_a_missing_driver_names_the_nearest_and_the_installed_ones(install: Install) -> None:
    """A name that the project does not ship gets no `pip install`: the distribution would not exist."""
    install("heron-metricsink-mine", GROUP, "mine", GOOD)
    with pytest.raises(MissingDriverError) as raised:
        Drivers().resolve("metricsink", "mini", {})
    text = str(raised.value)
    assert text.startswith("no metricsink driver 'mini' is installed (nearest: 'mine'); installed: ")
    assert "pip install" not in text
    assert raised.value.distribution == ""


def test_the_error_for_a_shipped_driver_names_its_distribution() -> None:
    """The name is right, or nearly right, and only the distribution is missing."""
    with pytest.raises(MissingDriverError, match="to add it: `pip install heron-packing-ffd`") as raised:
        Drivers([]).resolve("packing", "ffd", {})
    assert raised.value.distribution == "heron-packing-ffd"
    with pytest.raises(MissingDriverError, match=r"\(nearest: 'ffd'\).*to add 'ffd': `pip install heron-packing-ffd`"):
        Drivers([]).resolve("packing", "ffdd", {})


def test_the_table_of_shipped_drivers_is_complete() -> None:
    """The table has exactly the drivers of the folder `plugins`."""
    plugins = Path(__file__).resolve().parents[3]
    shipped = {f"{family}-{name}" for family, names in SHIPPED.items() for name in names}
    assert shipped == {each.name for each in plugins.iterdir() if each.name.partition("-")[0] in SHIPPED} - {
        "packing-kit",
        "scheduler-kit",
    }


def test_the_error_for_an_unknown_family_lists_the_families() -> None:
    """The core defines the families."""
    with pytest.raises(PluginError, match=r"no driver family 'schedular' \(nearest: 'scheduler'\)"):
        Drivers().resolve("schedular", "local", {})


def test_two_providers_of_one_name_are_both_named(install: Install) -> None:
    """Otherwise the order of `sys.path` would choose one of them."""
    install("heron-metricsink-mine", GROUP, "mine", GOOD)
    install("other-sink", GROUP, "mine", GOOD)
    with pytest.raises(PluginError, match="provided by heron-metricsink-mine and other-sink; uninstall"):
        Drivers().resolve("metricsink", "mine", {})


@pytest.mark.parametrize(
    "source",
    ["import no_such_module_at_all", "raise AssertionError('x')", "1 +", "raise SystemError('x')", "exit(3)"],
)
def test_driver_that_does_not_import_breaks_only_itself(install: Install, source: str) -> None:
    """A run that does not use the broken plugin works; the error names the distribution."""
    install("heron-metricsink-broken", GROUP, "broken", source)
    install("heron-metricsink-mine", GROUP, "mine", GOOD)
    assert Drivers().resolve("metricsink", "mine", {}).name == "mine"
    with pytest.raises(PluginError, match=r"of heron-metricsink-broken .* does not import"):
        Drivers().resolve("metricsink", "broken", {})


@pytest.mark.parametrize(("version", "remedy"), [(0, "heron-metricsink-mine"), (99, "heron-core"), (None, "heron-m")])
def test_other_contract_version_names_the_side_to_upgrade(install: Install, version: int | None, remedy: str) -> None:
    """A driver for another version of the contract might work only partly."""
    install("heron-metricsink-mine", GROUP, "mine", SINK.format(version=version))
    with pytest.raises(PluginError, match=f"upgrade with `pip install -U {remedy}"):
        Drivers().resolve("metricsink", "mine", {})


def test_driver_of_another_family_is_refused(install: Install) -> None:
    """An entry point in the wrong group would otherwise fail at the first missing method."""
    install("heron-uploader-mine", "heron.uploader", "mine", GOOD)
    with pytest.raises(PluginError, match=r"not a subclass of heron\.spi\.uploader\.Uploader"):
        Drivers().resolve("uploader", "mine", {})


def test_driver_with_missing_methods_is_refused(install: Install) -> None:
    """The error names the missing method; otherwise a role process would fail with a TypeError."""
    install("heron-metricsink-mine", GROUP, "mine", GOOD.replace("def flush", "def flash"))
    with pytest.raises(PluginError, match="lacks flush"):
        Drivers().resolve("metricsink", "mine", {})


def test_catalog_shows_the_working_and_the_broken(install: Install) -> None:
    """`heron plugins list` is where a person looks when a plugin does not work."""
    install("heron-metricsink-a", GROUP, "a", GOOD)
    install("heron-metricsink-b", GROUP, "b", "import no_such_module_at_all")
    found = {each.name: each for each in Drivers().catalog("metricsink")}
    good, broken = found["a"], found["b"]
    assert (good.distribution, good.version, good.spi_version) == ("heron-metricsink-a", "1.2", 1)
    assert (good.capabilities, good.entry, good.error) == (("events",), "heron_metricsink_a:It", "")
    assert broken.spi_version is None
    assert "no_such_module_at_all" in broken.error


def test_a_deprecated_contract_is_shown(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plugin works, and the warning gives the remedy before a later core refuses the plugin."""
    monkeypatch.setattr("heron.spi.metricsink.SPI_VERSION", 2)
    install("heron-metricsink-a", GROUP, "a", GOOD)
    remedy = "which is deprecated; this core supports versions 1 to 2; upgrade with `pip install -U heron-metricsink-a`"
    for words in (["list", "metricsink"], ["check", "metricsink", "a"]):
        result = CliRunner().invoke(heron, ["plugins", *words])
        assert "1 (deprecated)" in result.stdout
        assert remedy in result.stderr
    shown = CliRunner().invoke(heron, ["plugins", "show", "metricsink", "a"])
    assert "version 1, deprecated" in shown.stdout
    assert "upgrade with" in shown.stdout
    assert "as this core's" not in shown.stdout


def test_catalog_lists_every_provider_of_a_name(install: Install) -> None:
    """Both have the error, which names the two distributions."""
    install("heron-metricsink-mine", GROUP, "mine", GOOD)
    install("other-sink", GROUP, "mine", GOOD)
    doubled = [each for each in Drivers().catalog("metricsink") if each.name == "mine"]
    assert sorted(each.distribution for each in doubled) == ["heron-metricsink-mine", "other-sink"]
    assert all("uninstall" in each.error for each in doubled)


def test_driver_whose_import_hangs_is_abandoned(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list has the other drivers, and names the one that hangs."""
    monkeypatch.setattr(
        "heron_cli.catalog.drivers.IMPORT_LIMIT_S", 2.0
    )  # enough for the other drivers, also on a busy machine
    source = "import threading\ngate = threading.Event()\ngate.wait(30)\n" + GOOD
    module = install("heron-metricsink-hanging", GROUP, "hanging", source)
    install("heron-metricsink-mine", GROUP, "mine", GOOD)
    found = {each.name: each.error for each in Drivers().catalog("metricsink")}
    assert found["mine"] == ""
    assert "driver 'hanging' of heron-metricsink-hanging" in found["hanging"]
    assert "not done after 2 s" in found["hanging"]
    sys.modules[module].gate.set()


def test_output_of_a_driver_during_its_import_is_not_output_of_the_command(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    """The output of `--json` must stay valid JSON."""
    install("heron-metricsink-loud", GROUP, "loud", "print('hello from a plugin')\n" + GOOD)
    Drivers().catalog("metricsink")
    Drivers().resolve("metricsink", "loud", {})
    output = capsys.readouterr()
    assert output.out == ""
    assert "hello from a plugin" in output.err


def test_catalog_has_the_origin_of_a_driver(install: Install) -> None:
    """A user may have forgotten a driver in a folder of PYTHONPATH."""
    install("heron-metricsink-mine", GROUP, "mine", GOOD)
    found = {each.name: each for each in Drivers().catalog("metricsink")}
    assert found["mine"].source == "path"
    assert found["mine"].place.endswith("site")


def test_entry_points_of_other_groups_are_ignored(install: Install) -> None:
    """Other tools have entry points too."""
    install("some-tool", "console_scripts", "mine", GOOD)
    assert not any(each.distribution == "some-tool" for each in Drivers().catalog())


def test_every_family_states_its_version() -> None:
    """`contract_version` reads it from the file that defines the family."""
    assert all(contract_version(base) >= 1 for base in FAMILIES.values())


def test_threads_that_load_drivers_give_the_output_back(capsys: pytest.CaptureFixture[str]) -> None:
    """The one that ends last must not put back what the first had put there."""
    entered, may_leave = threading.Event(), threading.Event()

    def load() -> None:
        with stdout_to_stderr():
            entered.set()
            may_leave.wait(WITHIN_S)

    def look() -> None:
        with stdout_to_stderr():
            ended.set()

    ended = threading.Event()
    threads = [threading.Thread(target=call) for call in (load, look)]
    threads[0].start()
    assert entered.wait(WITHIN_S)
    threads[1].start()
    assert not ended.wait(0.05)
    may_leave.set()
    for each in threads:
        each.join(WITHIN_S)
    sys.stdout.write("an answer\n")
    assert capsys.readouterr().out == "an answer\n"

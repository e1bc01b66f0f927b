"""Third-party drivers that nobody changes, one for each number of each contract: a contract keeps its word to them.

A folder of tests/frozen_drivers is a distribution, as its author wrote it for the contract FAMILY-NUMBER. While the
core supports the number, the driver loads and passes the suite of its family. After that it is refused by its number.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from heron.driver_kit.loading import contract_versions, open_driver
from heron.errors import PluginError
from heron.spi.driver import Driver, DriverRef
from heron.spi.families import FAMILIES
from heron.spi.hooks import HookSpecs
from heron_cli.catalog.drivers import Drivers
from heron_cli.catalog.plugin_path import add_plugin_path
from heron_cli.main import heron

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "frozen_drivers"
PAGE = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")

# These texts also tell ./dev quick and ./dev verify which files the tests use.
FROZEN = {
    "checkpoint-1/suite.py": "checkpoint-1/heron_checkpoint_table.py",
    "engine-1/suite.py": "engine-1/heron_engine_single.py",
    "health-1/suite.py": "health-1/heron_health_queues.py",
    "hooks-1/suite.py": "hooks-1/heron_hooks_deaths.py",
    "metricsink-1/suite.py": "metricsink-1/heron_metricsink_journal.py",
    "packing-1/suite.py": "packing-1/heron_packing_spread.py",
    "packing-2/suite.py": "packing-2/heron_packing_spread.py",
    "scheduler-1/suite.py": "scheduler-1/heron_scheduler_nice.py",
    "serializer-1/suite.py": "serializer-1/heron_serializer_marshal.py",
    "state-1/suite.py": "state-1/heron_state_dicts.py",
    "statemgr-1/suite.py": "statemgr-1/heron_statemgr_shared.py",
    "store-1/suite.py": "store-1/heron_store_files.py",
    "task-1/suite.py": "task-1/heron_task_plain.py",
    "uploader-1/suite.py": "uploader-1/heron_uploader_shelf.py",
}
NAMES = [each.partition("/")[0] for each in FROZEN]

CONTRACTS: Mapping[str, type] = {**FAMILIES, "hooks": HookSpecs}

# Cases that start other processes, or compute for more than 0.1 s. `./dev verify` runs them as well.
LONG = (
    *("killed", "kill_9", "kill_leaves", "crashes", "exit_code", "attached", "detached", "two_jobs", "cannot_start"),
    *("left_alone", "race", "holder", "fresh_store", "concurrent", "never_misses", "processes", "another_process"),
    *("one_instant", "disturb", "random_calls", "an_object_that_is_replaced", "memory_does_not_grow", "survives"),
    *("ten_thousand", "every_container_within", "the_same_way", "nothing_changes", "respects", "tasks_that_stay"),
    *("number_of_containers", "makes_room", "reports_the_largest", "16_mib", "nested_plain"),
)

RUN = """
import sys
from pathlib import Path
import pytest
from heron_cli.catalog.plugin_path import add_plugin_path
report, cases, *suites = sys.argv[1:]
add_plugin_path([Path(suite).parent for suite in suites])
# The names of the report begin at the folder of all drivers, also if there is one suite.
folder = f"--rootdir={Path(suites[0]).parents[1]}"
options = ["-q", "-c", "/dev/null", folder, "-p", "no:cacheprovider", "--import-mode=importlib", f"--junitxml={report}"]
sys.exit(pytest.main([*options, "--continue-on-collection-errors", "-k", cases, *suites]))
"""


def contract(name: str) -> tuple[str, int]:
    """The family and the number of the contract that a driver was frozen for."""
    family, _, number = name.rpartition("-")
    return family, int(number)


def is_supported(name: str) -> bool:
    family, number = contract(name)
    return number in numbers(family)


def numbers(family: str) -> range:
    """The numbers of a contract that this core supports."""
    base: type[Driver] = CONTRACTS[family]
    return contract_versions(base)


SUPPORTED = [each for each in NAMES if is_supported(each)]


def digest(name: str) -> str:
    """SHA-256 over the paths and the bytes of a frozen distribution."""
    whole = hashlib.sha256()
    for path in sorted((FOLDER / name).rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            whole.update(path.relative_to(FOLDER).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return whole.hexdigest()


def failures(into: Path, names: list[str], cases: str) -> dict[str, list[str]]:
    """Run the suites of frozen drivers in a process that has them on its plugin path; return what failed."""
    report = into / "report.xml"
    suites = [str(FOLDER / name / "suite.py") for name in names]
    environment = {**os.environ, "PYTEST_ADDOPTS": ""}
    command = (sys.executable, "-c", RUN, str(report), cases, *suites)
    ran = subprocess.run(command, cwd=FOLDER, env=environment, capture_output=True, text=True, timeout=580, check=False)
    assert report.exists(), ran.stdout + ran.stderr
    found: dict[str, list[str]] = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314  # pytest has just written it
        name = next(each for each in names if re.search(rf"\b{each}\b", " ".join(case.attrib.values())))
        found.setdefault(name, []).extend(
            f"{case.attrib['name']}: {child.attrib.get('message', '')}\n{child.text}"
            for child in case
            if child.tag in ("failure", "error")
        )
    assert found.keys() == set(names), ran.stdout + ran.stderr
    return found


def remedy(name: str) -> str:
    """What to do about a frozen driver that fails."""
    family, number = contract(name)
    module = f"heron-core/src/{CONTRACTS[family].__module__.replace('.', '/')}.py"
    if number < numbers(family)[-1]:
        return (
            f"the core supports {family} {number} beside {numbers(family)[-1]}: keep the driver working, or raise "
            f"OLDEST_SPI_VERSION in {module} when the releases that docs/plugins.md promises are over"
        )
    return (
        f"{family} {number} is the present contract, and this driver keeps it: keep the driver working; or raise "
        f"SPI_VERSION in {module}, add a row to docs/plugins.md#versions-of-a-contract, and freeze a driver as "
        f"tests/frozen_drivers/{family}-{number + 1}"
    )


@pytest.fixture(scope="module")
def quick_failures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What failed of the short cases of all suites, in one process."""
    return failures(tmp_path_factory.mktemp("quick"), SUPPORTED, f"not ({' or '.join(LONG)})")


@pytest.mark.matrix
@pytest.mark.parametrize("name", SUPPORTED)
def test_a_frozen_driver_keeps_working(name: str, quick_failures: dict[str, list[str]]) -> None:
    """Its users change nothing, so a change of Heron that breaks it must show in the number of the contract."""
    failed = quick_failures[name]
    assert not failed, f"{remedy(name)}\n\n" + "\n".join(failed)


@pytest.mark.matrix
@pytest.mark.parametrize("name", SUPPORTED)
def test_a_frozen_driver_passes_its_whole_suite(name: str, tmp_path: Path) -> None:
    """With the cases that kill processes and count seconds."""
    failed = failures(tmp_path, [name], "")[name]
    assert not failed, f"{remedy(name)}\n\n" + "\n".join(failed)


@pytest.mark.parametrize("family", CONTRACTS)
def test_each_supported_number_has_a_frozen_driver_and_a_row(family: str) -> None:
    """A number without a driver promises what nobody checks; people read the row when they are refused."""
    missing = [each for number in numbers(family) if (each := f"{family}-{number}") not in NAMES]
    assert not missing, f"freeze a driver for the new number: tests/frozen_drivers/{missing[0]}"
    rows = [int(number) for number in re.findall(rf"^\| {family} \| (\d+) \|", PAGE, re.MULTILINE)]
    assert rows == [*range(2, numbers(family)[-1] + 1)], "docs/plugins.md#versions-of-a-contract: a row for each change"


def test_frozen_drivers_are_as_they_were() -> None:
    """An edit would hide that the contract has changed."""
    lines = (FOLDER / "digests").read_text(encoding="utf-8").splitlines()
    kept = {name: text for text, _, name in (line.partition("  ") for line in lines)}
    assert sorted(kept) == sorted(NAMES) == sorted(each.parent.name for each in FOLDER.glob("*/pyproject.toml"))
    for name in NAMES:
        family, number = contract(name)
        assert digest(name) == kept[name], (
            f"tests/frozen_drivers/{name} was edited. It is frozen for contract {number} of {family}: a change of the "
            "contract that breaks it raises the number and gets a new frozen driver. Only a frozen driver that was "
            f"added just now may get another line in tests/frozen_drivers/digests: {digest(name)}  {name}"
        )


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo what ``--plugin-path`` changes in this process."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    before = set(sys.modules)
    yield
    for each in {Path(path).stem for path in FOLDER.glob("*/*.py")} - before:
        sys.modules.pop(each, None)


@pytest.mark.usefixtures("outside")
@pytest.mark.filterwarnings("ignore:.* has moved to:DeprecationWarning")  # an old path warns, and works
def test_frozen_drivers_are_found_and_load() -> None:
    """By the catalog of the command, which looks for entry points and compares the numbers."""
    add_plugin_path([FOLDER / name for name in SUPPORTED])
    drivers = Drivers()
    for name in SUPPORTED:
        family, number = contract(name)
        table = tomllib.loads((FOLDER / name / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for driver in table["entry-points"][f"heron.{family}"] if family in FAMILIES else ():
            assert drivers.driver(family, driver).spi_version == number, name


WORDS = """
from heron.api import Spout, Topology
class Lines(Spout):
    outputs = ["line"]
    def next_tuple(self):
        self.end()
class Words(Topology):
    lines = Lines.spec()
"""


@pytest.mark.parametrize("driver", ["spread", "tight"])
@pytest.mark.parametrize(
    "words",
    [
        ("plan", "words.py", "--packing", "{}"),
        ("run", "words.py", "--set", "packing.driver={}"),
        ("plugins", "check", "packing", "{}", "--json"),
        ("plugins", "show", "packing", "{}"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
@pytest.mark.usefixtures("outside")
def test_a_packing_for_contract_1_is_refused_by_every_command(
    words: tuple[str, ...], driver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One uses a method that the draft of a plan has lost, the other imports a class that has another name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    Path("words.py").write_text(WORDS)
    asked = [each.format(driver) for each in words]
    result = CliRunner().invoke(heron, ["--plugin-path", str(FOLDER / "packing-1"), *asked])
    said = " ".join(result.output.split())
    assert "Error: " not in said
    assert refusal("packing-1", driver, "heron-packing-spread") in said
    assert result.exit_code == (0 if "show" in words else 2)


@pytest.mark.parametrize("driver", ["spread", "tight"])
def test_a_packing_for_contract_1_is_refused_by_a_process_without_discovery(
    driver: str, monkeypatch: pytest.MonkeyPatch, outside: None
) -> None:
    """A running topology may still name a driver that was upgraded or downgraded meanwhile."""
    del outside
    monkeypatch.syspath_prepend(FOLDER / "packing-1")
    ref = DriverRef("packing", driver, f"heron_packing_{driver}:{driver.capitalize()}Packing")
    with pytest.raises(PluginError, match=re.escape(refusal("packing-1", driver, f"heron-packing-{driver}"))):
        open_driver(ref, FAMILIES["packing"])


def refusal(name: str, driver: str, distribution: str) -> str:
    """How a driver for another contract is refused: by name, both numbers and the page."""
    family, number = contract(name)
    supported = numbers(family)
    spelled = f"version {supported[0]}" if len(supported) == 1 else f"versions {supported[0]} to {supported[-1]}"
    return (
        f"{family} driver '{driver}' is written for version {number} of its contract, this core supports {spelled}; "
        f"upgrade with `pip install -U {distribution}`; the page docs/plugins.md says what changed"
    )

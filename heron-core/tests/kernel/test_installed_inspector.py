"""The inspector of a task is found when a question comes, also if it was installed after the task began."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from heron.errors import MissingDriverError, PluginError
from heron.kernel.installed_inspector import open_inspector

if TYPE_CHECKING:
    from heron_testing.builders.distributions import Install

SOURCE = """
from heron.spi.inspector import TaskInspector

class It(TaskInspector):
    spi_version = {version}

    @classmethod
    def open(cls, options):
        assert options == {{}}
        return cls()

    stacks = profile = memory = tuples = None
"""


@pytest.fixture
def install(install: Install, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Nothing else is installed."""
    monkeypatch.setattr(sys, "path", [each for each in sys.path if "site-packages" not in each])
    return install


def test_an_inspector_that_is_installed_later_is_found(install: Install) -> None:
    """People install it when they want to look at a task that runs already."""
    with pytest.raises(MissingDriverError, match="`pip install heron-task-inspector`, then ask again") as missing:
        open_inspector()
    assert missing.value.distribution == "heron-task-inspector"
    assert sys.executable in str(missing.value)
    install("heron-task-mine", "heron.task", "mine", SOURCE.format(version=1))
    assert type(open_inspector()).__module__ == "heron_task_mine"


def test_several_inspectors_are_refused_by_name(install: Install) -> None:
    """A question would otherwise be answered by either of them."""
    for name in ("mine", "yours"):
        install(f"heron-task-{name}", "heron.task", name, SOURCE.format(version=1))
    with pytest.raises(PluginError, match="heron-task-mine and heron-task-yours are task inspectors"):
        open_inspector()


def test_an_inspector_for_another_contract_is_refused(install: Install) -> None:
    """The text has the remedy, and the command shows it."""
    install("heron-task-later", "heron.task", "later", SOURCE.format(version=99))
    with pytest.raises(PluginError, match=re.escape("task driver 'later' is written for version 99")) as refused:
        open_inspector()
    assert "pip install -U heron-core" in str(refused.value)


def test_a_process_of_a_task_loads_nothing_of_it_before_a_question() -> None:
    """Each task of each topology would pay for it, and a module of the author with such a name would be hidden."""
    never = ["heron.kernel.installed_inspector", "heron.spi.inspector", "heron_task_inspector", "importlib.metadata"]
    never += ["heron.spi.task_memory", "heron.spi.task_profile", "heron.spi.task_stacks", "heron.spi.task_tuples"]
    script = f"import sys, heron.instance.main; print([each for each in {never} if each in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path}; {script}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"

"""Packages with new code arrive while the tasks of a container run."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Self

import pytest

from heron.errors import PackageError
from heron.executor.task_packages import TaskPackages
from heron.executor.workspace import Workspace
from heron.ipc.reactor import Reactor
from heron.kernel.manifest import PackageManifest
from heron.kernel.package import pack
from heron.spi.driver import DriverRef
from heron.spi.uploader import Uploader


class Files(Uploader):
    """Packages are files, and their URIs paths."""

    spi_version = 1

    @classmethod
    def open(cls, options: object) -> Self:
        """Needs no option."""
        del options
        return cls()

    def upload(self, package: Path, name: str) -> str:
        """Not used."""
        raise NotImplementedError

    def undo(self, uri: str) -> None:
        """Not used."""

    def download(self, uri: str, target: Path) -> None:
        """Copy the file."""
        if not Path(uri).is_file():
            msg = f"package {uri}: there is none"
            raise PackageError(msg)
        shutil.copyfile(uri, target)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    found = Workspace(tmp_path / "run", 1)
    found.make()
    return found


@pytest.fixture
def reactor() -> Reactor:
    return Reactor()


@pytest.fixture
def packages(workspace: Workspace, reactor: Reactor) -> TaskPackages:
    """The container has the package of the submission."""
    return TaskPackages(reactor, workspace, DriverRef("uploader", "files", f"{__name__}:Files"), "", [""])


def stored(tmp_path: Path, text: str) -> str:
    """A package with one file."""
    folder = tmp_path / text
    folder.mkdir()
    (folder / "wc.py").write_text(text)
    pack(folder, ["wc.py"], PackageManifest("wc", "wc", {}), tmp_path / f"{text}.tar.gz")
    return str(tmp_path / f"{text}.tar.gz")


def fetched(reactor: Reactor, packages: TaskPackages, *uris: str) -> list[str]:
    """Fetch packages, and return why they could not be fetched, when all have arrived."""
    outcomes: list[str] = []

    def note(error: str) -> None:
        outcomes.append(error)
        if len(outcomes) == len(uris):
            reactor.stop()

    for each in uris:
        packages.fetch(each, note)
    reactor.run()
    return outcomes


def test_a_package_is_fetched_once_for_all_tasks(
    tmp_path: Path, workspace: Workspace, reactor: Reactor, packages: TaskPackages
) -> None:
    """Each version has a folder of its own, because former tasks may still import from theirs."""
    new = stored(tmp_path, "new")
    assert (packages.has(""), packages.has(new)) == (True, False)
    assert fetched(reactor, packages, new, new) == ["", ""]
    assert packages.has(new)
    assert (workspace.package_dir(new) / "wc.py").read_text() == "new"
    assert workspace.package_dir(new) != workspace.package_dir()


def test_the_package_of_the_submission_arrives_too(tmp_path: Path, workspace: Workspace, reactor: Reactor) -> None:
    """A container that has started while all of its tasks ran new code needs it when that code returns."""
    files = DriverRef("uploader", "files", f"{__name__}:Files")
    packages = TaskPackages(reactor, workspace, files, stored(tmp_path, "submitted"), ["new"])
    assert not packages.has("")
    assert fetched(reactor, packages, "") == [""]
    assert packages.has("")
    assert (workspace.package_dir() / "wc.py").read_text() == "submitted"


def test_a_package_that_cannot_be_fetched_has_a_reason_and_is_asked_for_again(
    tmp_path: Path, reactor: Reactor, packages: TaskPackages
) -> None:
    """The store may be away."""
    missing = str(tmp_path / "new.tar.gz")
    outcomes: list[str] = []

    def again(error: str) -> None:
        outcomes.append(error)
        if len(outcomes) == 2:
            reactor.stop()
        else:
            assert not packages.has(missing)
            packages.fetch(stored(tmp_path, "new"), again)

    packages.fetch(missing, again)
    reactor.run()
    assert outcomes == [f"package {missing}: there is none", ""]


def test_packages_without_a_process_are_removed(
    tmp_path: Path, workspace: Workspace, reactor: Reactor, packages: TaskPackages
) -> None:
    """That of the submission stays: a scheduler starts the container again with it."""
    one, two = stored(tmp_path, "one"), stored(tmp_path, "two")
    assert fetched(reactor, packages, one, two) == ["", ""]
    packages.keep({two})
    assert (packages.has(one), packages.has(two), packages.has("")) == (False, True, True)
    assert not workspace.package_dir(one).exists()
    assert workspace.package_dir(two).is_dir()

"""The bar of an upload, on a terminal that is a text."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from heron.driver_kit.loading import open_driver
from heron.errors import PackageError
from heron.spi.uploader import Uploader
from heron_cli.profiles import Profile
from heron_cli.topologies.progress import follow_upload
from heron_cli.view.progress_bars import upload_bar


class Halves(Uploader):
    """Tells of one half and nothing more."""

    spi_version = 1

    @classmethod
    def open(cls, options: object) -> Halves:
        return cls()

    def upload(self, package: Path, name: str) -> str:
        self._moved(1_000_000, 2_000_000)
        return ""

    def undo(self, uri: str) -> None: ...

    def download(self, uri: str, target: Path) -> None: ...


def never() -> bool:
    return False


def test_the_bar_shows_how_much_of_how_much() -> None:
    """Somebody who waits for minutes has to see that it goes on."""
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    uploader = Halves()
    with upload_bar(2_000_000, console) as tell, follow_upload(uploader, never, tell):
        uploader.upload(Path("package"), "words")
    said = console.file
    assert isinstance(said, io.StringIO)
    assert "uploading the package" in said.getvalue()
    assert "1.0/2.0 MB" in said.getvalue()


def test_a_driver_that_tells_nothing_may_be_watched(profile: Profile, tmp_path: Path) -> None:
    """Progress is optional."""
    uploader = open_driver(profile.uploader, Uploader)
    (tmp_path / "package").write_bytes(b"x")
    with upload_bar(1, Console(file=io.StringIO(), force_terminal=True)) as tell, follow_upload(uploader, never, tell):
        uploader.upload(tmp_path / "package", "words")


def test_a_wish_to_end_ends_an_upload_as_soon_as_something_moves() -> None:
    """A large package on a slow line takes minutes, and Ctrl-C must not take as long."""
    uploader, told = Halves(), list[int]()
    with pytest.raises(KeyboardInterrupt), follow_upload(uploader, lambda: True, lambda moved, _: told.append(moved)):
        uploader.upload(Path("package"), "words")
    assert told == []
    uploader.upload(Path("package"), "words")  # what comes after the block is not ended


def test_an_upload_that_fails_after_the_wish_to_end_was_ended_by_it() -> None:
    """The store was away, somebody has waited long enough: that is no error of the store's."""
    msg = "the store does not answer"
    with pytest.raises(KeyboardInterrupt), follow_upload(Halves(), lambda: True, lambda *_: None):
        raise PackageError(msg)
    with pytest.raises(PackageError), follow_upload(Halves(), never, lambda *_: None):
        raise PackageError(msg)

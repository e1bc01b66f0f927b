"""The bar of an upload, on a terminal that writes to a string."""

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
from heron_cli.view.live.upload_bar import upload_bar


class Halves(Uploader):
    """Reports one half of the bytes."""

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


def test_the_bar_shows_moved_and_total_bytes() -> None:
    """A user who waits for minutes can see the progress."""
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    uploader = Halves()
    with upload_bar(2_000_000, console) as moved, follow_upload(uploader, never, moved):
        uploader.upload(Path("package"), "words")
    output = console.file
    assert isinstance(output, io.StringIO)
    assert "uploading the package" in output.getvalue()
    assert "1.0/2.0 MB" in output.getvalue()


def test_a_driver_may_report_no_progress(profile: Profile, tmp_path: Path) -> None:
    """Reports of progress are optional."""
    uploader = open_driver(profile.uploader, Uploader)
    (tmp_path / "package").write_bytes(b"x")
    with (
        upload_bar(1, Console(file=io.StringIO(), force_terminal=True)) as moved,
        follow_upload(uploader, never, moved),
    ):
        uploader.upload(tmp_path / "package", "words")


def test_a_cancellation_ends_an_upload_at_the_next_bytes() -> None:
    """An upload may take minutes, but Ctrl-C must end it soon."""
    uploader, moved_bytes = Halves(), list[int]()
    with (
        pytest.raises(KeyboardInterrupt),
        follow_upload(uploader, lambda: True, lambda moved, _: moved_bytes.append(moved)),
    ):
        uploader.upload(Path("package"), "words")
    assert moved_bytes == []
    uploader.upload(Path("package"), "words")  # a later upload is not cancelled


def test_an_upload_that_fails_after_a_cancellation_is_cancelled() -> None:
    """The user has cancelled the wait for a store, so the error of the store does not matter."""
    msg = "the store does not answer"
    with pytest.raises(KeyboardInterrupt), follow_upload(Halves(), lambda: True, lambda *_: None):
        raise PackageError(msg)
    with pytest.raises(PackageError), follow_upload(Halves(), never, lambda *_: None):
        raise PackageError(msg)

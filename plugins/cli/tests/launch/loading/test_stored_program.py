"""The program of a stored package."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import pytest

from heron.errors import PackageError
from heron.spi.uploader import PackageEntry, Uploader
from heron_cli.launch.loading.stored_program import stored_program
from heron_cli.topologies.environment import ProfileChoice

BYTES = 100


class Shelf(Uploader):
    """Has one package, which is not one of a topology; it arrives in single bytes."""

    spi_version = 1
    moved = 0

    @classmethod
    def open(cls, options: object) -> Self:
        del options
        return cls()

    def upload(self, package: Path, name: str) -> str:
        raise PackageError(name, package)

    def undo(self, uri: str) -> None:
        raise PackageError(uri)

    def download(self, uri: str, target: Path) -> None:
        target.write_text(uri)
        for self.moved in range(1, BYTES + 1):
            self._moved(self.moved, BYTES)

    def tagged(self, name: str, tag: str) -> PackageEntry:
        return PackageEntry(f"{name}-{tag}", name, BYTES, 0.0)


@pytest.mark.parametrize(("after", "moved"), [(7, 7), (BYTES + 1, BYTES)])
def test_ctrl_c_ends_a_download_at_the_next_bytes(monkeypatch: pytest.MonkeyPatch, after: int, moved: int) -> None:
    """A large package of a slow registry may take minutes; nothing of it is unpacked then."""
    uploader, asked = Shelf(), 0

    def cancelled() -> bool:
        nonlocal asked
        asked += 1
        return asked >= after

    place = "heron_cli.launch.loading.stored_program."
    monkeypatch.setattr(f"{place}find_profile", lambda *_: ProfileStub)
    monkeypatch.setattr(f"{place}open_guarded", lambda *_: uploader)
    with pytest.raises(KeyboardInterrupt), stored_program(ProfileChoice("here"), "words:live", cancelled):
        pass
    assert uploader.moved == moved


class ProfileStub:
    """A profile, as far as it is asked."""

    uploader = None

"""The faults of the uploader's contract: uploads that are killed, and a store that is away, full or silent."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from heron.errors import PackageError
from heron.spi.uploader import Uploader
from heron_testing.contracts.driver import DriverContract, in_time, needed
from heron_testing.faults import FULL_BYTES, Faults

__all__ = ["UploaderFaultCases"]

_STALL_S = 30.0  # the contract's longest time without progress
_LARGE = bytes(range(256)) * (FULL_BYTES // 16)
_KILLED_AFTER = (1, 1, 2, 3, 5)  # lines of the actor: kills fall before, into and behind an upload


class UploaderFaultCases(DriverContract):
    """Part of `heron_testing.contracts.uploader.UploaderContract`."""

    family = "uploader"

    def test_an_upload_killed_in_the_middle_leaves_nothing_that_looks_whole(
        self, uploader: Uploader, options: dict[str, object], package: Path, target: Path
    ) -> None:
        """kill -9 at any moment: the next submission of the same file stores it whole, and a container gets that."""
        package.write_bytes(_LARGE * 8)
        entry = f"{self.driver_class.__module__}:{self.driver_class.__qualname__}"
        module = "heron_testing.contracts.uploader_actor"
        command = [sys.executable, "-m", module, entry, json.dumps(options), str(package), "words"]
        for lines in _KILLED_AFTER:
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as actor:
                assert actor.stdout is not None
                assert [actor.stdout.readline() for _ in range(lines)] == ["uploading\n"] * lines
                actor.kill()
            uri = uploader.upload(package, "words")
            uploader.download(uri, target)
            assert target.read_bytes() == package.read_bytes()
            uploader.undo(uri)

    def test_a_store_that_is_away_is_an_error_and_comes_back(
        self, uploader: Uploader, package: Path, target: Path, faults: Faults
    ) -> None:
        """The command says so and undoes the rest; a container tries again with its next attempt."""
        uri = uploader.upload(package, "words")
        with needed(uploader, faults, "away")():
            for attempt in (
                lambda: uploader.upload(package, "others"),
                lambda: uploader.download(uri, target),
            ):
                with in_time(_STALL_S), pytest.raises(PackageError):
                    attempt()
            assert list(target.parent.iterdir()) == []
        uploader.download(uri, target)
        assert target.read_bytes() == package.read_bytes()
        uploader.upload(package, "others")

    def test_an_upload_that_finds_no_space_leaves_nothing(
        self, uploader: Uploader, package: Path, target: Path, faults: Faults
    ) -> None:
        """A full disk is told to the person who submits; what was stored before is still there."""
        full = needed(uploader, faults, "full")
        first = uploader.upload(package, "words")
        content = package.read_bytes()
        package.write_bytes(_LARGE)
        with full(), pytest.raises(PackageError):
            uploader.upload(package, "words")
        uploader.download(first, target)
        assert target.read_bytes() == content
        uploader.download(uploader.upload(package, "words"), target)
        assert target.read_bytes() == _LARGE

    def test_a_download_that_finds_no_space_leaves_no_half_file(
        self, uploader: Uploader, package: Path, target: Path, faults: Faults
    ) -> None:
        """The disk of the container's own host may be the full one, whatever the store is."""
        package.write_bytes(_LARGE)
        uri = uploader.upload(package, "words")
        with needed(uploader, faults, "full")(), pytest.raises(PackageError):
            uploader.download(uri, target)
        assert list(target.parent.iterdir()) == []

    def test_a_silent_store_is_given_up_in_time(
        self, uploader: Uploader, package: Path, target: Path, faults: Faults
    ) -> None:
        """No progress for 30 s is the end of it; a command that hangs is killed by its user, with things half done."""
        uri = uploader.upload(package, "words")
        with needed(uploader, faults, "silent")():
            with in_time(_STALL_S), pytest.raises(PackageError):
                uploader.download(uri, target)
            assert list(target.parent.iterdir()) == []

    def test_an_upload_whose_answer_is_lost_can_be_tried_again(
        self, uploader: Uploader, package: Path, target: Path, faults: Faults
    ) -> None:
        """Names are content-addressed: what the lost answer was about is the same package."""
        with (
            needed(uploader, faults, "answers_lost")(),
            in_time(_STALL_S),
            contextlib.suppress(PackageError),
        ):
            uploader.upload(package, "words")
        uploader.download(uploader.upload(package, "words"), target)
        assert target.read_bytes() == package.read_bytes()

"""The faults of the uploader suite: killed uploads, and a store that is away, full or silent."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

import pytest

from heron.errors import PackageError
from heron.spi.uploader import Uploader
from heron_testing.contracts.driver import DriverContract, in_time, needed
from heron_testing.contracts.parts.second_process import second_process
from heron_testing.faults import FULL_BYTES, Faults

__all__ = ["UploaderFaultCases"]

_STALL_S = 30.0  # the contract's longest time without progress
_LARGE = bytes(range(256)) * (FULL_BYTES // 16)
_KILLED_AFTER = (1, 1, 2, 3, 5)  # lines of the process: kills come before, during and after an upload


class UploaderFaultCases(DriverContract):
    """Part of `heron_testing.contracts.uploader.UploaderContract`."""

    family = "uploader"

    def test_an_upload_killed_in_the_middle_leaves_nothing_that_looks_whole(
        self, uploader: Uploader, options: dict[str, object], package: Path, target: Path
    ) -> None:
        """After SIGKILL at any moment, the next upload of the file stores it completely, and containers get that."""
        package.write_bytes(_LARGE * 8)
        command = second_process(self.family, self.driver_class, options, str(package), "words")
        for lines in _KILLED_AFTER:
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout is not None
                assert [process.stdout.readline() for _ in range(lines)] == ["uploading\n"] * lines
                process.kill()
            uri = uploader.upload(package, "words")
            uploader.download(uri, target)
            assert target.read_bytes() == package.read_bytes()
            uploader.undo(uri)

    def test_a_store_that_is_away_is_an_error_and_comes_back(
        self, uploader: Uploader, package: Path, target: Path, faults: Faults
    ) -> None:
        """The command reports the error and undoes its other steps. A container tries again in its next attempt."""
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
        """The command reports the full disk, and the packages that were stored before remain."""
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
        """The disk of the host of the container can be full with every kind of store."""
        package.write_bytes(_LARGE)
        uri = uploader.upload(package, "words")
        with needed(uploader, faults, "full")(), pytest.raises(PackageError):
            uploader.download(uri, target)
        assert list(target.parent.iterdir()) == []

    def test_a_silent_store_is_given_up_in_time(
        self, uploader: Uploader, package: Path, target: Path, faults: Faults
    ) -> None:
        """The call fails after 30 s without progress. People kill a hanging command, and its work stays half done."""
        uri = uploader.upload(package, "words")
        with needed(uploader, faults, "silent")():
            with in_time(_STALL_S), pytest.raises(PackageError):
                uploader.download(uri, target)
            assert list(target.parent.iterdir()) == []

    def test_an_upload_whose_answer_is_lost_can_be_tried_again(
        self, uploader: Uploader, package: Path, target: Path, faults: Faults
    ) -> None:
        """The name of a package comes from its content, so a second upload stores the same package."""
        with (
            needed(uploader, faults, "answers_lost")(),
            in_time(_STALL_S),
            contextlib.suppress(PackageError),
        ):
            uploader.upload(package, "words")
        uploader.download(uploader.upload(package, "words"), target)
        assert target.read_bytes() == package.read_bytes()

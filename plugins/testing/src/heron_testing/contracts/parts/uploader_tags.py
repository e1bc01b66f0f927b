"""The tags of packages, for the uploader suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.errors import PackageError
from heron.spi.uploader import LATEST, Uploader
from heron_testing.contracts.driver import DriverContract, requires

__all__ = ["UploaderTagCases"]

_CONTENTS = (b"first content", b"second content")


class UploaderTagCases(DriverContract):
    """Part of `heron_testing.contracts.uploader.UploaderContract`."""

    family = "uploader"

    @pytest.fixture
    def versions(self, uploader: Uploader, package: Path) -> tuple[str, ...]:
        """The URIs of two packages of one name, oldest first."""
        requires(uploader, "tags")
        uris = []
        for content in _CONTENTS:
            package.write_bytes(content)
            uris.append(uploader.upload(package, "words"))
        return tuple(uris)

    def test_a_tag_means_a_package_until_it_moves(self, uploader: Uploader, versions: tuple[str, ...]) -> None:
        """A deployment names a tag, and a rollback moves it."""
        for uri in (*versions, versions[0]):
            uploader.tag(uri, "live")
            found = uploader.tagged("words", "live")
            assert (found.uri, found.name) == (uri, "words")
            assert found.version in uri
            assert "live" in found.tags

    def test_each_upload_moves_the_latest_tag(
        self, uploader: Uploader, versions: tuple[str, ...], package: Path
    ) -> None:
        """People who give no tags find their last package, also when its content was stored before."""
        assert uploader.tagged("words", LATEST).uri == versions[1]
        package.write_bytes(_CONTENTS[0])
        uploader.upload(package, "words")
        assert uploader.tagged("words", LATEST).uri == versions[0]

    def test_tags_belong_to_a_name(self, uploader: Uploader, versions: tuple[str, ...], package: Path) -> None:
        """Two topologies have a tag each, also if one name begins with the other."""
        other = uploader.upload(package, "words.more")
        uploader.tag(versions[0], "live")
        uploader.tag(other, "live")
        assert uploader.tagged("words", "live").uri == versions[0]
        assert uploader.tagged("words.more", "live").uri == other

    def test_tags_are_listed(self, uploader: Uploader, versions: tuple[str, ...]) -> None:
        """`heron packages list` shows what a removal would take."""
        uploader.tag(versions[0], "live")
        uploader.tag(versions[0], "v1.0")
        listed = {each.uri: each.tags for each in uploader.packages()}
        assert listed == {versions[0]: ("live", "v1.0"), versions[1]: (LATEST,)}

    def test_a_tagged_package_stays(self, uploader: Uploader, versions: tuple[str, ...], target: Path) -> None:
        """The end of a topology removes its package, but not one that a rollback needs."""
        uploader.tag(versions[0], "live")
        for each in versions:
            uploader.undo(each)
        uploader.download(versions[0], target)
        assert target.read_bytes() == _CONTENTS[0]
        assert [each.uri for each in uploader.packages()] == [versions[0]]
        uploader.untag("words", "live")
        uploader.undo(versions[0])
        assert uploader.packages() == ()

    def test_untag_removes_the_tag_alone(self, uploader: Uploader, versions: tuple[str, ...], target: Path) -> None:
        """The package, its other tags, and other packages stay."""
        uploader.tag(versions[0], "live")
        uploader.tag(versions[0], "v1")
        for _ in range(2):  # a missing tag is not an error
            uploader.untag("words", "live")
        with pytest.raises(PackageError, match="live"):
            uploader.tagged("words", "live")
        assert uploader.tagged("words", "v1").uri == versions[0]
        uploader.download(versions[1], target)
        assert target.read_bytes() == _CONTENTS[1]

    def test_a_missing_tag_or_package_is_named(self, uploader: Uploader, versions: tuple[str, ...]) -> None:
        """A typing error must not start another version."""
        with pytest.raises(PackageError, match="no-such"):
            uploader.tagged("words", "no-such")
        uploader.undo(versions[0])
        with pytest.raises(PackageError, match="words"):
            uploader.tag(versions[0], "live")
        with pytest.raises(PackageError, match="live"):
            uploader.tagged("words", "live")

    @pytest.mark.parametrize("tag", ["", ".", "..", "a..b", "a/b", "a:b", "a b", "ä", "x" * 41, "0123abcd", "-/../x"])
    def test_a_hostile_tag_is_refused(self, uploader: Uploader, versions: tuple[str, ...], tag: str) -> None:
        """A tag becomes part of an address, and must not be taken for a version."""
        for attempt in (
            lambda: uploader.tag(versions[0], tag),
            lambda: uploader.untag("words", tag),
            lambda: uploader.tagged("words", tag),
        ):
            with pytest.raises(PackageError, match="tag"):
                attempt()

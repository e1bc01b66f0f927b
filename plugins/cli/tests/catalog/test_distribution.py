"""The origin of a plugin, according to its metadata."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path

import pytest

from heron_cli.catalog.drivers import SourceKind, provider_of


def entry_point(site: Path) -> importlib.metadata.EntryPoint:
    """Return the only entry point of the only distribution in a folder."""
    (found,) = importlib.metadata.distributions(path=[str(site)])
    return found.entry_points["it"]


@pytest.fixture
def info(tmp_path: Path) -> Path:
    """Write the metadata of a distribution, without the files that an installer adds."""
    info = tmp_path / "mine-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[heron.packing]\nit = mine:It\n")
    return info


def test_folder_on_the_path(tmp_path: Path, info: Path) -> None:
    """It was not installed: PYTHONPATH contains its folder."""
    assert info.exists()
    found = provider_of(entry_point(tmp_path))
    assert (found.distribution, found.version, found.source) == ("mine", "1.2", SourceKind.PATH)
    assert Path(found.place) == tmp_path


def test_wheel_of_an_index(tmp_path: Path, info: Path) -> None:
    """The installer leaves its name, and no source of the distribution."""
    (info / "INSTALLER").write_text("pip\n")
    found = provider_of(entry_point(tmp_path))
    assert (found.source, Path(found.place)) == (SourceKind.WHEEL, tmp_path)


@pytest.mark.parametrize(
    ("direct", "source", "place"),
    [
        ({"url": "file:///src/my%20plugin", "dir_info": {"editable": True}}, SourceKind.EDITABLE, "/src/my plugin"),
        ({"url": "file:///src/plugin", "dir_info": {}}, SourceKind.WHEEL, "/src/plugin"),
        (
            {"url": "https://user:token@git.example/x.git", "vcs_info": {"vcs": "git"}},
            SourceKind.WHEEL,
            "https://git.example/x.git",
        ),
    ],
)
def test_the_source_given_to_the_installer(
    tmp_path: Path, info: Path, direct: dict[str, object], source: SourceKind, place: str
) -> None:
    """PEP 610; a token in a URL is not shown."""
    (info / "direct_url.json").write_text(json.dumps(direct))
    found = provider_of(entry_point(tmp_path))
    assert (found.source, found.place) == (source, place)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"dir_info": []}', '{"dir_info": null, "url": "file:///x"}'])
def test_damaged_metadata_is_not_an_error(tmp_path: Path, info: Path, text: str) -> None:
    """Users list plugins when something is broken, so the list must not fail."""
    (info / "direct_url.json").write_text(text)
    assert provider_of(entry_point(tmp_path)).source is SourceKind.PATH

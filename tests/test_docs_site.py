"""The source of the documentation site: what `./dev docs` hands to mkdocs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from docs_site.contents import Contents, expanded, modules, paths
from docs_site.documents import documents
from docs_site.offline import loaded_from_network
from docs_site.rooms import replaced, rooms_text
from docs_site.site_source import write_site_source

from heron.errors import ConfigError

ROOT = Path(__file__).resolve().parents[1]


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, encoding="utf-8")


def test_entries_become_pages_below_their_titles() -> None:
    """Patterns list existing documents, and each module gets its own page."""
    contents: Contents = [{"Start": "README.md"}, {"Write": ["docs/*.md", "module heron.api"]}]
    filled = expanded(contents, ["README.md", "docs/a.md", "docs/b.md"])
    page = "reference/heron.api.md"
    assert filled == [{"Start": "README.md"}, {"Write": [["docs/a.md", "docs/b.md"], {"heron.api": page}]}]
    assert list(paths(filled)) == ["README.md", "docs/a.md", "docs/b.md", page]
    assert modules(contents) == ["heron.api"]


def test_a_document_in_no_entry_is_refused() -> None:
    """Otherwise readers could not find it in the site."""
    with pytest.raises(ConfigError, match=r"no entry has docs/new\.md; add it"):
        expanded(["README.md"], ["README.md", "docs/new.md"])


def test_an_entry_without_a_document_is_refused() -> None:
    """A renamed document must not leave its old name behind."""
    with pytest.raises(ConfigError, match=r"no document is 'docs/old\.md'"):
        expanded(["docs/old.md"], ["README.md"])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The pages of a small repository."""
    root = tmp_path / "repository"
    write(root, "README.md", "# Start\n\n[page](docs/page.md) [licence](LICENSE) [data](tests/data)\n")
    write(root, "LICENSE", "free")
    write(root, "docs/page.md", "# Page\n\n[up](../README.md) [data](../tests/data/) [code](../examples/a.py)\n")
    write(root, "examples/a.py", "x = 1\n")
    write(root, "tests/data/one.bin", "1")
    write(root, "docs_site/contents.yml", "- README.md\n- docs/*.md\n- module heron.api\n")
    write_site_source(root, tmp_path / "source", tmp_path / "site")
    return tmp_path / "source"


def test_pages_keep_their_paths_and_links(source: Path) -> None:
    """A link means the same in the repository and in the site."""
    assert (
        (source / "pages" / "docs" / "page.md").read_text(encoding="utf-8").startswith("# Page\n\n[up](../README.md)")
    )
    assert (source / "pages" / "reference" / "heron.api.md").read_text(
        encoding="utf-8"
    ) == "# heron.api\n\n::: heron.api\n"


def test_linked_files_come_along(source: Path) -> None:
    """Code and licences are files of the site."""
    assert (source / "pages" / "LICENSE").read_text(encoding="utf-8") == "free"
    assert (source / "pages" / "examples" / "a.py").read_text(encoding="utf-8") == "x = 1\n"


def test_links_to_folders_lead_to_a_list_of_their_files(source: Path) -> None:
    """A site has no folders."""
    assert "(tests/data/files.md)" in (source / "pages" / "README.md").read_text(encoding="utf-8")
    assert "(../tests/data/files.md)" in (source / "pages" / "docs" / "page.md").read_text(encoding="utf-8")
    assert "`one.bin`" in (source / "pages" / "tests" / "data" / "files.md").read_text(encoding="utf-8")


def test_settings_name_folders_and_contents(source: Path) -> None:
    """mkdocs reads them on top of those in docs_site/mkdocs.yml."""
    settings = json.loads((source / "mkdocs.yml").read_text(encoding="utf-8"))
    assert settings["docs_dir"] == str(source / "pages")
    assert settings["nav"][0] == "README.md"


def test_every_document_of_this_repository_is_in_the_contents(tmp_path: Path) -> None:
    """The check also runs here, because these tests do not build the site."""
    settings = json.loads(write_site_source(ROOT, tmp_path / "source", tmp_path / "site").read_text(encoding="utf-8"))
    assert set(documents(ROOT)) <= set(paths(settings["nav"]))


@pytest.mark.parametrize(
    ("html", "loads"),
    [
        ('<script src="https://host/a.js"></script>', True),
        ('<link rel="stylesheet" href="//host/a.css">', True),
        ('<link href="https://host/a.css" rel="preconnect">', True),
        ('<img src="http://host/a.png">', True),
        ('<a href="https://host/page">text</a>', False),
        ('<script src="assets/a.js"></script>', False),
    ],
)
def test_what_a_page_would_load_is_found(tmp_path: Path, html: str, loads: bool) -> None:
    """The site works without a network; links to other sites may stay."""
    write(tmp_path, "a/page.html", html)
    assert bool(loaded_from_network(tmp_path)) is loads


def test_the_page_shows_the_rooms_that_import_linter_holds() -> None:
    """If this fails, run ./dev docs."""
    page = (ROOT / "docs" / "rooms.md").read_text(encoding="utf-8")
    assert replaced(page, rooms_text(ROOT)) == page


def test_a_page_without_the_marks_is_refused() -> None:
    """Nothing may be lost around them."""
    with pytest.raises(ConfigError, match="are not there once"):
        replaced("# Architecture\n", "| level |")

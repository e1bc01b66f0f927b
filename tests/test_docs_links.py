"""Links between the documents of this repository lead somewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs_site.documents import broken_links, documents

ROOT = Path(__file__).resolve().parents[1]


def test_links_lead_to_files_and_headings_that_exist() -> None:
    """Readers do not trust a page with broken links."""
    assert [f"{page}: {link}" for page in documents(ROOT) for link in broken_links(ROOT / page)] == []


@pytest.mark.parametrize(
    ("link", "broken"),
    [
        ("[x](other.md)", []),
        ("[x](other.md#two-words)", []),
        ("[x](#here)", []),
        ("[x](../docs)", []),
        ("[x](scheme://host/absent.md)", []),
        ("[x](absent.md)", ["absent.md"]),
        ("[x](other.md#absent)", ["other.md#absent"]),
        ("[x](#absent)", ["#absent"]),
    ],
)
def test_a_broken_link_is_found(tmp_path: Path, link: str, broken: list[str]) -> None:
    """In other files, in folders, and to headings of this page or another."""
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    page.with_name("other.md").write_text("# Two words\n", encoding="utf-8")
    page.write_text(f"# Here\n\n{link}\n", encoding="utf-8")
    assert broken_links(page) == broken

"""Parses the answer of a WebDAV server to PROPFIND, a multistatus document."""

from __future__ import annotations

from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

from heron.errors import PackageError

__all__ = ["Member", "members"]

_DAV = "{DAV:}"


@dataclass(frozen=True, slots=True)
class Member:
    """A file of a folder."""

    file: str
    size_bytes: int
    age_s: float
    """The age by the server's clock; 0 if the server does not send both times."""


def members(document: bytes, date: str, url: str) -> tuple[Member, ...]:
    """Return the files in the document. `date` is the ``Date`` header of the answer, `url` the folder.

    Raises:
        PackageError: when the document is not XML.
    """
    try:
        root = ElementTree.fromstring(document)  # noqa: S314  # the operator chose the server; expat bounds entities
    except ElementTree.ParseError as error:
        msg = f"{url}: the answer to PROPFIND is not XML: {error}; check uploader.url"
        raise PackageError(msg) from error
    now_s = _seconds(date)
    return tuple(_member(each, now_s) for each in root.iter(f"{_DAV}response"))


def _member(response: ElementTree.Element, now_s: float | None) -> Member:
    path = unquote(urlsplit(response.findtext(f"{_DAV}href", "")).path)
    size = next((each.text for each in response.iter(f"{_DAV}getcontentlength") if each.text), "0")
    changed_s = _seconds(next((each.text for each in response.iter(f"{_DAV}getlastmodified") if each.text), ""))
    age_s = max(0.0, now_s - changed_s) if now_s is not None and changed_s is not None else 0.0
    return Member(path.rpartition("/")[2], int(size) if size.strip().isdecimal() else 0, age_s)


def _seconds(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp() if date else None
    except ValueError:
        return None

"""The tags of the repository: one for each package, one for each tag of a name, and those of signatures.

| tag of the registry | meaning |
|---|---|
| ``NAME-SHA256`` | the package of that name with that content, by the SHA-256 in 64 hexadecimal digits |
| ``NAME..TAG`` | the tag of a name; a name has no two dots in sequence |
| ``sha256-DIGEST.sig`` | the signatures of the manifest with that digest, as cosign names them |
"""

from __future__ import annotations

import re

from heron.errors import PackageError
from heron_driver_kit.packages import PackageName

__all__ = ["name_tag", "package_of", "package_tag", "parse_name_tag", "signature_tag"]

_TAG = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_VERSION = re.compile(r"[0-9a-f]{8,}")
_TAG_CHARACTERS = 40
_NAME_CHARACTERS = 63  # with '-' and 64 digits it has the 128 characters that a tag may have
_BETWEEN = ".."


def package_tag(package: PackageName) -> str:
    """Return the tag of a package, which is also the last part of its URI.

    Raises:
        PackageError: when a registry cannot have the tag.
    """
    _check_name(package.name)
    return f"{package.name}-{package.digest}"


def package_of(tag: str) -> PackageName | None:
    """Parse a tag; None when it is not that of a package."""
    return PackageName.of_file(f"{tag}.tar.gz")


def name_tag(name: str, tag: str) -> str:
    """Return the registry's tag for a tag of a name.

    Raises:
        PackageError: when the name or the tag has another form.
    """
    _check_name(name)
    if not _TAG.fullmatch(tag) or len(tag) > _TAG_CHARACTERS:
        msg = (
            f"tag {tag!r:.80} is refused; use letters, digits, '_', '-' and inner dots, "
            f"at most {_TAG_CHARACTERS} characters"
        )
        raise PackageError(msg)
    if _VERSION.fullmatch(tag):
        msg = f"tag {tag!r} is refused, because it looks like a version; add a letter after f, such as 'v{tag}'"
        raise PackageError(msg)
    return f"{name}{_BETWEEN}{tag}"


def parse_name_tag(text: str) -> tuple[str, str] | None:
    """Return the name and its tag; None when the registry's tag has another form."""
    name, between, tag = text.partition(_BETWEEN)
    return (name, tag) if between and name and _TAG.fullmatch(tag) else None


def signature_tag(digest: str) -> str:
    """Return the tag of the signatures of a manifest."""
    return f"{digest.replace(':', '-')}.sig"


def _check_name(name: str) -> None:
    PackageName(name, "")
    if len(name) > _NAME_CHARACTERS or name.startswith("-"):
        msg = (
            f"package name {name!r:.80} is refused: in a registry it has at most {_NAME_CHARACTERS} characters, and "
            "begins with a letter, a digit or '_'; rename the topology, or use another uploader"
        )
        raise PackageError(msg)

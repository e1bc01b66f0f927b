"""The one refusal of the parts of heronpy that are not served."""

from __future__ import annotations

from typing import NoReturn

from heron.api.config import NOT_YET
from heron.errors import TopologyError

__all__ = ["refuse"]


def refuse(package: str) -> NoReturn:
    """Refuses the import of `package`, whichever of its modules a program names.

    Raises:
        TopologyError: always.
    """
    msg = f"import {package}: {NOT_YET}"
    raise TopologyError(msg)

"""Becomes another program that ends with the tests: ``python -m servers.bound_exec COMMAND…``.

The kernel's signal at the end of a parent outlives the exec, so that also a killed pytest leaves no server behind.
"""

from __future__ import annotations

import os
import sys

from heron.driver_kit.parent_process import bind_to_parent

if __name__ == "__main__":
    bind_to_parent()
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606  # the caller's own list, no shell

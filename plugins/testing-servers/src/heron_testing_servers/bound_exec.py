"""Become another program that ends with the tests: ``python -m heron_testing_servers.bound_exec COMMAND…``.

The kernel's parent-death signal survives the exec, so a killed pytest leaves no server behind.
"""

from __future__ import annotations

import os
import sys

from heron.driver_kit.parent_process import bind_to_parent

if __name__ == "__main__":
    bind_to_parent()
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606  # a list from the caller, without a shell

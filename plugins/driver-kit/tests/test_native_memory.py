"""Large blocks go back to the system."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import resource
from heron_driver_kit.native_memory import return_large_blocks
def resident_bytes():
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[1]) * resource.getpagesize()
return_large_blocks()
before = resident_bytes()
for _ in range(3):
    blocks = [bytearray(3 << 20) for _ in range(20)]
    small = [bytes(100_000 + number) for number in range(20)]  # between them, so nothing else can be trimmed
    del blocks
print(resident_bytes() - before)
"""


def test_blocks_of_megabytes_are_returned() -> None:
    """Without it, the second round would be in the heap, below the blocks that stay."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 20 << 20

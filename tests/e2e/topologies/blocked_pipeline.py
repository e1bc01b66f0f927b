"""A pipeline with a function that blocks until there is a file ``go`` among the results, and then goes on.

``--source 1`` puts the function in the stage of the source; otherwise it is in a stage behind it.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from recording import arguments

from heron_streamlet import Builder, Config, Items, Runner, TextFolder

ELEMENTS = 20_000  # 80 MiB of text, more than fits between two tasks
BLOCKS_AT = 100


def blocks(out: Path, element: tuple[int, str]) -> int:
    """Return the number of an element; one of them takes long."""
    number, _ = element
    if number == BLOCKS_AT:
        (out / "blocked").touch()
        while not (out / "go").exists():
            time.sleep(0.02)  # what the test is about
    return number


if __name__ == "__main__":
    options = arguments(source=0)
    results = Path(options.out)
    builder = Builder()
    elements = builder.new_source(Items(lambda: ((number, "x" * 4096) for number in range(ELEMENTS))))
    ahead = elements if options.source else elements.repartition(1).set_name("ahead")
    numbers = ahead.map(partial(blocks, results)).set_name("blocks")
    numbers.repartition(1).set_name("write").to_sink(TextFolder(results / "numbers"))
    Runner().run("blocked_pipeline", Config(), builder)

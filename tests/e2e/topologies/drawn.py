"""Pipelines of `heron_testing.pipelines.drawn_chains` side by side: those of the numbers ``--first`` to ``--last``.

With ``--wait`` their sources wait in the middle until there is a file ``go`` among the results.
"""

from __future__ import annotations

from pathlib import Path

from recording import arguments

from heron_streamlet import Config, Runner
from heron_testing.pipelines.drawn_chains import ChainBuilder, add_chain

if __name__ == "__main__":
    options = arguments(first=1, last=1, delivery=Config.ATMOST_ONCE, wait=0, breaks=0)
    out = Path(options.out)
    builder = ChainBuilder(out, breaks=bool(options.breaks), gate=out / "go" if options.wait else None)
    for number in range(options.first, options.last + 1):
        builder.number = number
        add_chain(builder, number)
    config = Config({"topology.stateful.checkpoint.interval.seconds": 0.3} if options.delivery > 1 else None)
    Runner().run("drawn", config.set_delivery_semantics(options.delivery), builder)

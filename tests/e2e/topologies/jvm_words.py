"""Words of lines, in Java and Python: every word arrives with its line and its place.

``bolt``: a Java bolt splits the lines of a Python spout. ``spout``: spout and bolts are in Java. ``between``: a Python
bolt splits the lines of a Java spout, and a Java bolt sends the words on. The spout and the last bolt in Python are
those of `languages.py`.
"""

from __future__ import annotations

import json

from languages import TEXT, WORD, Lines, Words
from recording import arguments

from heron.api import Bolt, Grouping, TopologyBuilder, Tuple
from heron_runtime_jvm import JvmBolt, JvmSpout


class Split(Bolt):
    """Splits lines in Python."""

    outputs = WORD

    def process(self, tup: Tuple) -> None:
        """Emits the words of a line."""
        for place, word in enumerate(tup.values[0].split()):
            self.emit([word, tup.values[1], place], anchors=[tup])
        self.ack(tup)


if __name__ == "__main__":
    given = arguments(lines=1000, mode="ATMOST_ONCE", kind="bolt", path="[]", par=2)
    path = json.loads(given.path)
    builder = TopologyBuilder("languages")
    config = {
        "out": given.out,
        "lines": given.lines,
        "topology.message.timeout.secs": 60,
        "topology.max.spout.pending": 500,
    }
    every = {"topology.stateful.checkpoint.interval.seconds": 1} if given.mode == "EFFECTIVELY_ONCE" else {}
    builder.set_config({**config, **every, "topology.reliability.mode": given.mode})
    if given.kind == "bolt":
        lines = builder.add_spout("lines", Lines, par=1)
    else:
        lines = JvmSpout.spec(
            "lines", java_class="parts.Parts$Lines", arguments=[given.out, given.lines], class_path=path, outputs=TEXT
        )
        builder.add_spec(lines)
    if given.kind == "between":
        split = builder.add_bolt("split", Split, par=given.par, inputs=[lines])
    else:
        split = JvmBolt.spec("split", [lines], given.par, java_class="parts.Parts$Split", class_path=path, outputs=WORD)
        builder.add_spec(split)
    last = split
    if given.kind != "bolt":
        inputs = {split: Grouping.fields("word")}
        last = JvmBolt.spec("pass", inputs, given.par, java_class="parts.Parts$Pass", class_path=path, outputs=WORD)
        builder.add_spec(last)
    builder.add_bolt("words", Words, par=1, inputs={last: Grouping.LOWEST})
    builder.build_and_submit()

"""A running word count on Pathway: ``python pathway_count.py WORDS BLOCKS``; prints JSON on the last line.

Pathway reads all words at once and joins them to few updates, so the time of all of them is measured, from the first.
"""
# mypy: ignore-errors

import json
import sys
import time
from pathlib import Path

import pathway as pw

WORDS = Path(sys.argv[1]).read_text(encoding="utf-8").split()
BLOCKS = int(sys.argv[2])


class Words(pw.io.python.ConnectorSubject):
    """All words, over and over."""

    def run(self):
        times["start_s"] = time.monotonic()
        for _ in range(BLOCKS):
            for word in WORDS:
                self.next(word=word)


class Word(pw.Schema):
    word: str


times, counts = {}, {}


def take(key, row, time, is_addition):
    if is_addition:
        counts[row["word"]] = row["count"]


words = pw.io.python.read(Words(), schema=Word, autocommit_duration_ms=100)
found = words.groupby(pw.this.word).reduce(pw.this.word, count=pw.reducers.count())
pw.io.subscribe(found, on_change=take, on_end=lambda: times.setdefault("end_s", time.monotonic()))
pw.run(monitoring_level=pw.MonitoringLevel.NONE)
total = BLOCKS * len(WORDS)
right = counts == dict.fromkeys(WORDS, BLOCKS)
print(json.dumps({"per_s": total / (times["end_s"] - times["start_s"]), "counted": total, "right": right}))

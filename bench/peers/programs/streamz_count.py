"""A running word count on streamz, in one process: ``python streamz_count.py WORDS WARM_UP_S WINDOW_S``.

All words are emitted over and over until the window is over. Prints JSON on the last line.
"""
# mypy: ignore-errors

import json
import sys
import time
from pathlib import Path

from streamz import Stream

WORDS = Path(sys.argv[1]).read_text(encoding="utf-8").split()
WARM_UP_S, WINDOW_S = map(float, sys.argv[2:])


def count(counts, word):
    counts[word] = number = counts.get(word, 0) + 1
    return counts, (word, number)


newest = {}
source = Stream()
source.accumulate(count, returns_state=True, start={}).sink(lambda update: newest.__setitem__(*update))
start_s, blocks, marks = time.monotonic(), 0, []
while not marks or time.monotonic() - start_s < WARM_UP_S + WINDOW_S:
    for word in WORDS:
        source.emit(word)
    blocks += 1
    if not marks and time.monotonic() - start_s >= WARM_UP_S:
        marks = [time.monotonic(), blocks]
per_s = (blocks - marks[1]) * len(WORDS) / (time.monotonic() - marks[0])
right = newest == dict.fromkeys(WORDS, blocks)
print(json.dumps({"per_s": per_s, "counted": blocks * len(WORDS), "right": right}))

"""One pipeline for history and for now: views that a batch and a live topology write, and that readers see as one.

from heron_streamlet.views import Count, HistoryAndLive, View

clicks = View("clicks-by-ad", Count())
source = HistoryAndLive(TextFiles("archive/*.jsonl"), live_lines)
found = builder.new_source(source).map(json.loads).event_time(lambda click: click["at"])
found.key_by(lambda click: click["ad"]).to_view(clicks)

In: a graph whose author has called `to_view`; elements by key and span. Out: the graph of one side, which stages and
publishes values in a store; answers for readers. `api` makes views. `for_side` runs before an engine compiles the
graph, folds and sinks run in tasks, and readers in any process.

Reading order: `view`, `monoids` and `sketches` (how values are aggregated), `sides` (what each side runs),
`view_folds`, `view_sinks`, `key_bytes` (keys in the store), `reader`.
"""

from heron_streamlet.views.monoids import Count, Max, Min, Monoid, Sum, TopK
from heron_streamlet.views.reader import Answer, ViewReader
from heron_streamlet.views.sides import HistoryAndLive
from heron_streamlet.views.sketches import BloomFilter, CountMin, Counts, Frequent, HyperLogLog, Members
from heron_streamlet.views.view import View

__all__ = [
    "Answer",
    "BloomFilter",
    "Count",
    "CountMin",
    "Counts",
    "Frequent",
    "HistoryAndLive",
    "HyperLogLog",
    "Max",
    "Members",
    "Min",
    "Monoid",
    "Sum",
    "TopK",
    "View",
    "ViewReader",
]

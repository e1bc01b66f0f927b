"""Overload without wrong numbers: a pipeline sheds elements, and its aggregates are corrected for it.

from heron_streamlet.sampling import MeanEstimate, shed

kept = shed(lines.map(parse).event_time(time_of), rate=5000)
kept.key_by(topic_of).count_by_key_and_window(tumbling_window(60)).log()    # (KeyedWindow, Estimate) pairs

In: a stream. Out: a stream whose elements have weights, and results of windows and views as `Estimate`. The weight
travels with the element, so it is the same on each engine. Docs: docs/shedding.md.

Reading order: `estimate`, `estimates` (aggregates of weighted values), `shedder` (what a task keeps),
`sampled_streamlet` (what authors call).
"""

from heron_streamlet.sampling.estimate import Estimate
from heron_streamlet.sampling.estimates import (
    CountEstimate,
    DistinctEstimate,
    FrequentEstimate,
    MeanEstimate,
    SumEstimate,
)
from heron_streamlet.sampling.sampled_streamlet import SampledKeyedStreamlet, SampledStreamlet, shed

__all__ = [
    "CountEstimate",
    "DistinctEstimate",
    "Estimate",
    "FrequentEstimate",
    "MeanEstimate",
    "SampledKeyedStreamlet",
    "SampledStreamlet",
    "SumEstimate",
    "shed",
]

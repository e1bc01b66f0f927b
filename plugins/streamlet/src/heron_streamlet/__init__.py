"""Pipelines of stream transformations.

from heron_streamlet import Builder, Config, Runner, TextFiles, tumbling_window

builder = Builder()
lines = builder.new_source(TextFiles("logs/*.txt"))
lines.flat_map(str.split).key_by(str.lower).count_by_key().log()
Runner().run("words", Config(), builder)
"""

import sys

from heron.driver_kit.moved_modules import MovedModules
from heron_streamlet.api.builder import Builder
from heron_streamlet.api.config import Config, Resources
from heron_streamlet.api.runner import Runner
from heron_streamlet.api.streamlet import KeyedStreamlet, Streamlet, WindowedStreamlet
from heron_streamlet.connectors.sinks import Sink, TextFolder, TransactionalSink
from heron_streamlet.connectors.sources import Generator, Items, Reader, Source, TextFiles
from heron_streamlet.connectors.transformer import StageContext, Transformer
from heron_streamlet.moved_modules import MOVED
from heron_streamlet.windowing.fold import Aggregate
from heron_streamlet.windowing.window import (
    CountWindow,
    KeyedWindow,
    SessionWindow,
    SlidingWindow,
    Window,
    WindowResult,
    count_window,
    session_window,
    sliding_window,
    tumbling_window,
)

__all__ = [
    "Aggregate",
    "Builder",
    "Config",
    "CountWindow",
    "Generator",
    "Items",
    "KeyedStreamlet",
    "KeyedWindow",
    "Reader",
    "Resources",
    "Runner",
    "SessionWindow",
    "Sink",
    "SlidingWindow",
    "Source",
    "StageContext",
    "Streamlet",
    "TextFiles",
    "TextFolder",
    "TransactionalSink",
    "Transformer",
    "Window",
    "WindowResult",
    "WindowedStreamlet",
    "count_window",
    "session_window",
    "sliding_window",
    "tumbling_window",
]

sys.meta_path.append(MovedModules(MOVED))

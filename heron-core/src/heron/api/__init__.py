"""The Python API for authors of topologies: ``from heron.api import Bolt, Grouping, Spout, TopologyBuilder``."""

from heron.api import api_constants, global_metrics
from heron.api.api_constants import TopologyReliabilityMode
from heron.api.bolt import BaseBolt, Bolt
from heron.api.capture import capture_topologies
from heron.api.component import BaseComponent, BoltCollector, SpoutCollector, ThreadsafeCollector
from heron.api.component_spec import HeronComponentSpec
from heron.api.context import ITaskHook, TopologyContext
from heron.api.dead_letter import DeadLetter, FailedRecordError
from heron.api.keyed_state import CounterState, KeyedState, ListState, MapState, ValueState
from heron.api.metrics import (
    AssignableMetrics,
    CountMetric,
    IMetric,
    IReducer,
    MeanReducedMetric,
    MeanReducer,
    MultiAssignableMetrics,
    MultiCountMetric,
    MultiMeanReducedMetric,
    MultiReducedMetric,
    ReducedMetric,
)
from heron.api.plain_batch import PlainBatch
from heron.api.plain_components import PlainBolt, PlainSpout
from heron.api.serializer import IHeronSerializer, PythonSerializer, default_serializer
from heron.api.spout import BaseSpout, Spout
from heron.api.state import HashMapState, ITwoPhaseStatefulComponent, State, StatefulComponent
from heron.api.stream import Grouping, ICustomGrouping, Stream
from heron.api.stream_id import GlobalStreamId
from heron.api.task_hook import (
    BoltAckInfo,
    BoltExecuteInfo,
    BoltFailInfo,
    EmitInfo,
    SpoutAckInfo,
    SpoutFailInfo,
)
from heron.api.topology import Topology, TopologyBuilder, TopologyType
from heron.api.tuple import Tuple, TupleHelper
from heron.api.updatable import IUpdatable
from heron.api.window_bolt import SlidingWindowBolt, TumblingWindowBolt, WindowContext

__all__ = [
    "AssignableMetrics",
    "BaseBolt",
    "BaseComponent",
    "BaseSpout",
    "Bolt",
    "BoltAckInfo",
    "BoltCollector",
    "BoltExecuteInfo",
    "BoltFailInfo",
    "CountMetric",
    "CounterState",
    "DeadLetter",
    "EmitInfo",
    "FailedRecordError",
    "GlobalStreamId",
    "Grouping",
    "HashMapState",
    "HeronComponentSpec",
    "ICustomGrouping",
    "IHeronSerializer",
    "IMetric",
    "IReducer",
    "ITaskHook",
    "ITwoPhaseStatefulComponent",
    "IUpdatable",
    "KeyedState",
    "ListState",
    "MapState",
    "MeanReducedMetric",
    "MeanReducer",
    "MultiAssignableMetrics",
    "MultiCountMetric",
    "MultiMeanReducedMetric",
    "MultiReducedMetric",
    "PlainBatch",
    "PlainBolt",
    "PlainSpout",
    "PythonSerializer",
    "ReducedMetric",
    "SlidingWindowBolt",
    "Spout",
    "SpoutAckInfo",
    "SpoutCollector",
    "SpoutFailInfo",
    "State",
    "StatefulComponent",
    "Stream",
    "ThreadsafeCollector",
    "Topology",
    "TopologyBuilder",
    "TopologyContext",
    "TopologyReliabilityMode",
    "TopologyType",
    "TumblingWindowBolt",
    "Tuple",
    "TupleHelper",
    "ValueState",
    "WindowContext",
    "api_constants",
    "capture_topologies",
    "default_serializer",
    "global_metrics",
]

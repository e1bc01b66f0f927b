"""Finds, inspects and changes topologies: the Python API of the ``heron`` command.

    from heron_cli.client import connect

    with connect("local") as client:
        for topology in client.list().entries:
            print(topology.name, topology.state)

Every method returns frozen values, prints nothing, and raises only subclasses of `heron.errors.HeronError`. A `Client`
is for one thread: open one client per thread.

Called by commands, services and programs, which import from this package; its modules and the rooms below are private.
Reading order: `heron_cli.profile_client`, then `client` (with `launch_functions`); what it computes from answers:
`traces`, `profile_tree`, `speedscope`; `sinks` and `views`.
"""

from heron.ipc.documents.letter_line import LetterLine
from heron.ipc.documents.metrics_table import MetricsReader, MetricsRow, MetricsSeries, MetricsValue
from heron.ipc.documents.status import TopologyStatus, UserErrorStatus
from heron.ipc.documents.traces_table import TracesTable
from heron.spi.task_memory import TaskMemory
from heron.spi.task_profile import TaskProfile
from heron.spi.task_stacks import TaskStacks
from heron.spi.task_tuples import TaskTuples
from heron.spi.uploader import PackageEntry
from heron.state_nodes.execution_state import ExecutionState
from heron.state_nodes.health_records import HealthRecords
from heron_cli.client.client import Client, StateChange, SubmitResult, connect, profiles_of
from heron_cli.client.profile_tree import FunctionTime, LineTime, function_times, line_times, summed_profile
from heron_cli.client.sinks import metrics_sinks
from heron_cli.client.speedscope import speedscope_file
from heron_cli.client.traces import AssembledTrace, HopSummary, TraceStep, TraceSummary, assembled, summary_of
from heron_cli.client.views import open_store
from heron_cli.topologies.checkpoint_list import ListedCheckpoint
from heron_cli.topologies.logs.dead_letters import stored_letters
from heron_cli.topologies.logs.log_files import LogLine
from heron_cli.topologies.logs.log_search import process_logs
from heron_cli.topologies.logs.whole_log import WholeLog, whole_log, whole_logs
from heron_cli.topologies.package_store import PruneResult, StoredPackage
from heron_cli.topologies.progress import Progress
from heron_cli.topologies.running.code_request import CodeRequest
from heron_cli.topologies.running.remote_topology import RemoteTopology
from heron_cli.topologies.running.restart import RestartedContainer
from heron_cli.topologies.running.status_report import StatusReport
from heron_cli.topologies.running.topology_plans import TopologyPlans
from heron_cli.topologies.runs.kill_topology import HowKilled, KillResult
from heron_cli.topologies.runs.topology_list import TopologyEntry, TopologyList

__all__ = [
    "AssembledTrace",
    "Client",
    "CodeRequest",
    "ExecutionState",
    "FunctionTime",
    "HealthRecords",
    "HopSummary",
    "HowKilled",
    "KillResult",
    "LetterLine",
    "LineTime",
    "ListedCheckpoint",
    "LogLine",
    "MetricsReader",
    "MetricsRow",
    "MetricsSeries",
    "MetricsValue",
    "PackageEntry",
    "Progress",
    "PruneResult",
    "RemoteTopology",
    "RestartedContainer",
    "StateChange",
    "StatusReport",
    "StoredPackage",
    "SubmitResult",
    "TaskMemory",
    "TaskProfile",
    "TaskStacks",
    "TaskTuples",
    "TopologyEntry",
    "TopologyList",
    "TopologyPlans",
    "TopologyStatus",
    "TraceStep",
    "TraceSummary",
    "TracesTable",
    "UserErrorStatus",
    "WholeLog",
    "assembled",
    "connect",
    "function_times",
    "line_times",
    "metrics_sinks",
    "open_store",
    "process_logs",
    "profiles_of",
    "speedscope_file",
    "stored_letters",
    "summary_of",
    "summed_profile",
    "whole_log",
    "whole_logs",
]

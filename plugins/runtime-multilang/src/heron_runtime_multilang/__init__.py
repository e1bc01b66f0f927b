"""Spouts and bolts that run in a child process and speak Storm's multilang protocol.

Reading order: `child_settings`, `framing`, `child_message`, `row_check`, `setup_message`, `child_process`,
`child_input`, `child_io`, `child_host`, `multilang_protocol`, `shell_bolt`, `shell_spout`.
"""

from heron_runtime_multilang.child_error import ChildError
from heron_runtime_multilang.child_settings import ChildArguments
from heron_runtime_multilang.shell_bolt import ShellBolt
from heron_runtime_multilang.shell_spout import ShellSpout

__all__ = ["ChildArguments", "ChildError", "ShellBolt", "ShellSpout"]

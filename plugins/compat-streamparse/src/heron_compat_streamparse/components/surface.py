"""Which classes use more than pystorm documents, and so need a child process with Storm's protocol.

The documented methods are carried out in the instance. A class that overrides or calls a part of the loop, or reads the
process's standard input, speaks the protocol itself.
"""

from __future__ import annotations

import ast
import inspect
import textwrap

from heron_compat_streamparse.specs.foreign import ForeignKind, ForeignRuntime

__all__ = ["own_protocol"]

_SERIALIZER = "serializer"  # may be read, but not set, and its methods are the protocol
_PROTOCOL = frozenset(
    {
        "run", "_run", "read_message", "read_command", "read_task_ids", "read_tuple", "read_handshake", "send_message",
        _SERIALIZER, "_setup_component", "_handle_run_exception", "_exit", "_batch_lock", "_batcher", "_batch_entry",
        "_batch_entry_run", "_handle_worker_exception", "exc_info", "_pending_commands", "_pending_task_ids",
        "_reader_lock", "_writer_lock",
    }
)  # fmt: skip
_STREAMS = ("input_stream", "output_stream")
_OURS = __name__.partition(".")[0]


def own_protocol(cls: type) -> ForeignRuntime | None:
    """Return what a component in Python needs a child process for, with file and line; or None."""
    for base in cls.__mro__:
        if base is object or base.__module__.partition(".")[0] == _OURS:
            continue
        if found := _found_in(base):
            name, line = found
            file = inspect.getsourcefile(base) or base.__module__
            return ForeignRuntime(
                ForeignKind.CHILD,
                f"{file}:{line}: {base.__qualname__} uses {name}",
                ("streamparse_run", f"{cls.__module__}.{cls.__qualname__}"),
            )
    return None


def _found_in(base: type) -> tuple[str, int] | None:
    try:
        lines, first = inspect.getsourcelines(base)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError, TypeError):  # without its source, only what the class defines is known
        return next(((name, 0) for name in vars(base) if name in _PROTOCOL), None)
    defined = tree.body[0]
    for node in defined.body if isinstance(defined, ast.ClassDef) else ():
        if isinstance(node, ast.FunctionDef) and node.name in _PROTOCOL:
            return node.name, first + node.lineno - 1
        if isinstance(node, ast.FunctionDef) and (used := _used_in(node)):
            return used[0], first + used[1] - 1
    return None


def _used_in(function: ast.FunctionDef) -> tuple[str, int] | None:
    own = function.args.args[0].arg if function.args.args else ""
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute):
            value = node.value
            is_own = _is_name(value, own)
            is_super = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "super"
            is_read = node.attr == _SERIALIZER and isinstance(node.ctx, ast.Load)
            if (is_own or is_super) and node.attr in _PROTOCOL and not is_read:
                return node.attr, node.lineno
            if isinstance(value, ast.Attribute) and value.attr == _SERIALIZER and _is_name(value.value, own):
                return _SERIALIZER, node.lineno
            if _is_name(value, "sys") and node.attr == "stdin":
                return "sys.stdin", node.lineno
        elif isinstance(node, ast.keyword) and node.arg in _STREAMS:
            return str(node.arg), node.value.lineno
    return None


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name

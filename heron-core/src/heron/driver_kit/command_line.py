"""The command line and the environment that the system shows for this process, in ``ps`` and in ``/proc``.

A process that was forked and not executed shows those of its parent. The kernel takes their places
from the process itself (Linux: PR_SET_MM_MAP, which needs no privilege). The other places in the same
structure stay as they are.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["can_show_command_line", "show_command_line"]

_PR_SET_MM, _PR_SET_MM_MAP, _PR_SET_MM_MAP_SIZE = 35, 14, 15  # linux/prctl.h
_UNCHANGED = 0xFFFFFFFF  # as exe_fd: keep the program
_FIELDS = {  # of the structure, by their field in proc(5)'s stat, counted behind the command's closing parenthesis
    "start_code": 23,
    "end_code": 24,
    "start_data": 42,
    "end_data": 43,
    "start_brk": 44,
    "start_stack": 25,
    "env_start": 47,
    "env_end": 48,
}


class _MemoryMap(ctypes.Structure):
    """``struct prctl_mm_map`` of Linux."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("start_code", "end_code", "start_data", "end_data")),
        *((name, ctypes.c_uint64) for name in ("start_brk", "brk", "start_stack")),
        *((name, ctypes.c_uint64) for name in ("arg_start", "arg_end", "env_start", "env_end", "auxv")),
        ("auxv_size", ctypes.c_uint32),
        ("exe_fd", ctypes.c_uint32),
    )


def can_show_command_line() -> bool:
    """Whether the kernel lets a process change the command line that it shows."""
    size = ctypes.c_uint(0)
    found = ctypes.CDLL(None).prctl(_PR_SET_MM, _PR_SET_MM_MAP_SIZE, ctypes.byref(size), 0, 0)
    return found == 0 and size.value == ctypes.sizeof(_MemoryMap)


def show_command_line(words: Sequence[str], environ: Mapping[str, str] | None = None) -> None:
    """Show `words` as the command line of this process, which must have one thread; and `environ` as its environment.

    Raises:
        OSError: when the kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.malloc.restype = libc.sbrk.restype = ctypes.c_void_p
    libc.malloc.argtypes = (ctypes.c_size_t,)
    command = b"".join(os.fsencode(word) + b"\0" for word in words)
    variables = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in (environ or {}).items())
    place = libc.malloc(len(command + variables))  # never freed: the kernel reads it until the process ends
    if not place:
        raise MemoryError
    ctypes.memmove(place, command + variables, len(command + variables))
    stat = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    places = {name: int(stat[index]) for name, index in _FIELDS.items()}
    arg_end = place + len(command)
    if environ is not None:
        places |= {"env_start": arg_end, "env_end": arg_end + len(variables)}
    shown = _MemoryMap(**places, arg_start=place, arg_end=arg_end, exe_fd=_UNCHANGED)
    shown.brk = libc.sbrk(0)  # last, because an allocation may move it
    if libc.prctl(_PR_SET_MM, _PR_SET_MM_MAP, ctypes.byref(shown), ctypes.sizeof(shown), 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl(PR_SET_MM_MAP): {os.strerror(code)}")

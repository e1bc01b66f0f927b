"""Values of structs and dataclasses from plain data, in many threads at once."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import msgspec
import pytest

from heron.spi.scheduler import ContainerStatus
from heron.spi.typed_values import convert_value, decode_json

_THREADS = """
    import sys, threading
    from dataclasses import make_dataclass
    from msgspec import defstruct
    from heron.spi.typed_values import convert_value, decode_json

    sys.setswitchinterval(1e-6)
    data = b'{"parts": [{"number": 1, "name": "x"}]}'
    for number in range(200):
        part = KIND("Part", [("number", int), ("name", str), ("error", str, "")])
        whole = KIND("Whole", [("parts", tuple[part, ...]), ("total", int, 0)])
        at_once = threading.Barrier(8)

        def decode():
            at_once.wait()
            assert decode_json(data, whole) == convert_value({"parts": [{"number": 1, "name": "x"}]}, whole)

        threads = [threading.Thread(target=decode) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    print("done")
"""


@pytest.mark.parametrize("kind", ["make_dataclass", pytest.param("defstruct", marks=pytest.mark.matrix)])
def test_threads_that_decode_a_class_for_the_first_time_do_not_crash(kind: str) -> None:
    """The watches of a service begin at the same moment. Without care this process crashes."""
    program = textwrap.dedent(_THREADS).replace("KIND", kind)
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stdout) == (0, "done\n"), process.stderr


def test_another_value_is_refused() -> None:
    """The callers translate what msgspec raises."""
    with pytest.raises(msgspec.ValidationError, match="container_id"):
        decode_json(b'{"container_id": "x"}', ContainerStatus)
    with pytest.raises(msgspec.ValidationError, match="container_id"):
        convert_value({"container_id": "x"}, ContainerStatus)
    with pytest.raises(msgspec.DecodeError):
        decode_json(b"{", ContainerStatus)


@pytest.mark.parametrize("data", [b'{"error": "\xff"}', b'{"new": ' + b"[" * 100_000], ids=["no UTF-8", "nested"])
def test_bytes_that_msgspec_cannot_read_are_its_own_error(data: bytes) -> None:
    """msgspec passes two errors of Python on, and a caller that does not know them ends with a traceback."""
    with pytest.raises(msgspec.DecodeError):
        decode_json(data, ContainerStatus)

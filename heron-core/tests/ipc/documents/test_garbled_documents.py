"""Documents of a damaged or hostile peer: each decoder answers with the error of its protocol."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from heron.errors import RemoteProtocolError
from heron.ipc.documents.metrics_table import decode_metrics
from heron.ipc.documents.status import StatusReader, decode_status
from heron.ipc.documents.traces_table import decode_traces
from heron.planner.key_balance import decode_owners
from heron.planner.runtime_config import decode_changes
from heron.state_nodes.plans import decode_tasks

DECODERS: dict[str, Callable[[bytes], object]] = {
    "changes": decode_changes,
    "metrics": decode_metrics,
    "owners": decode_owners,
    "read status": StatusReader().read,
    "status": decode_status,
    "tasks": decode_tasks,
    "traces": decode_traces,
}
NESTED = b"[" * 100_000
GARBLED = {
    "empty": b"",
    "no JSON": b"\x00",
    "text that is not UTF-8": b'{"topology": "\xff", "series": ["\xff"]}',
    "text that is not UTF-8 in a list": b'[{"name": "\xff", "component": "\xff"}]',
    "text that is not UTF-8 in a mapping": b'{"a": {"b": "\xff"}}',
    "nested": NESTED,
    "nested in a list": b'[{"new": ' + NESTED,
    "nested in a mapping": b'{"new": ' + NESTED,
    "nested in two mappings": b'{"a": {"b": ' + NESTED,
}


@pytest.mark.parametrize("data", GARBLED.values(), ids=GARBLED)
@pytest.mark.parametrize("decode", DECODERS.values(), ids=DECODERS)
def test_garbled_bytes_are_an_error_of_the_protocol(decode: Callable[[bytes], object], data: bytes) -> None:
    """The connection or the request ends with a reason; any other error would end the process."""
    with pytest.raises(RemoteProtocolError):
        decode(data)

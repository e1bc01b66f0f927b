"""The records of a health manager as text for people."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from heron.spi.health_values import Decision
from heron.state_nodes.health_records import HealthRecords

__all__ = ["history_text"]


def history_text(name: str, records: HealthRecords) -> str:
    """Return the mode and each decision, oldest first."""
    return "\n".join([_head(name, records), *(line for each in records.decisions for line in _decision(each))])


def _head(name: str, records: HealthRecords) -> str:
    if not records.mode:
        head = f"topology {name}: no health manager has begun; add `health: {{mode: advise}}` to its profile"
    else:
        head = f"topology {name}: health manager in mode {records.mode}"
    if records.paused:
        head += f", paused; `heron health {name} resume`"
    return f"{head}\nit cannot work now: {records.problem}" if records.problem else head


def _decision(decision: Decision) -> Iterator[str]:
    at = datetime.datetime.fromtimestamp(decision.at_s, tz=datetime.UTC).astimezone()
    diagnosis = decision.diagnosis
    yield ""
    yield f"{decision.number}  {at:%Y-%m-%d %H:%M:%S}  {decision.state.value}  {decision.action.text}"
    yield f"   {diagnosis.name}: {diagnosis.subject} ({decision.policy}): {diagnosis.evidence[0]}"
    if decision.reason and not decision.reason.endswith(diagnosis.evidence[0]):
        yield f"   {decision.reason}"

"""A round of a policy as text for people."""

from __future__ import annotations

from collections.abc import Iterator

from heron_health_manager.diagnosing.policy_round import Finding, Round

__all__ = ["health_text"]


def health_text(found: Round, observed_s: float) -> str:
    """One paragraph for each finding, the most confident first; otherwise how busy the topology is."""
    shape = found.measurements.shape
    head = f"topology {shape.name}, observed for {observed_s:.0f} s"
    if shape.changing:
        return f"{head}: an update is under way, so rates say little; try again when it is complete"
    lines = [f"{head}: {_summary(found)}"]
    for each in found.findings:
        lines += _finding(each)
    lines += [f"left out: {each}" for each in found.failed]
    return "\n".join(lines)


def _finding(finding: Finding) -> Iterator[str]:
    diagnosis, action = finding.diagnosis, finding.action
    yield ""
    yield f"{diagnosis.name}: {diagnosis.subject} (confidence {diagnosis.confidence:.0%})"
    for each in diagnosis.evidence:
        yield f"  {each}"
    if action is not None:
        yield f"  to do: {action.text}"
        if action.command:
            yield f"    {action.command}"


def _summary(found: Round) -> str:
    if found.findings:
        return f"{len(found.findings)} finding{'s' if len(found.findings) > 1 else ''}"
    shares = {each.subject: each.value for each in found.measurements.of("useful-share")}
    if not shares:
        return "nothing was measured; its tasks have sent no metrics"
    busiest = max(shares, key=lambda each: (shares[each], each))
    return f"healthy; its busiest task is {busiest}, {shares[busiest]:.0%} of the time"

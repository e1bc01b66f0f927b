"""``python -m heron_testing.seeded.authors SPEC``: the child of ``heron run --simulate --seed``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from heron_testing.seeded.clocks import install

if TYPE_CHECKING:
    from heron_testing.seeded.authors.findings import Finding
    from heron_testing.seeded.authors.program_run import Left
    from heron_testing.seeded.cluster import Program
    from heron_testing.seeded.faults import Fault

_OTHER_ORDER = 1_000_003  # added to the seed


def main() -> int:
    """Runs the program of the spec; returns 0 if nothing differs."""
    install()
    from heron.api.api_constants import TOPOLOGY_RELIABILITY_MODE  # noqa: PLC0415 - after the clock
    from heron.api.config import setting  # noqa: PLC0415
    from heron.driver_kit.parent_process import bind_to_parent  # noqa: PLC0415
    from heron.kernel.role_spec import read_spec  # noqa: PLC0415
    from heron.state_nodes.plans import decode_packing_plan, decode_topology  # noqa: PLC0415
    from heron_testing.seeded.authors.findings import faulty_findings, order_findings  # noqa: PLC0415
    from heron_testing.seeded.authors.program_command import ProgramSpec  # noqa: PLC0415
    from heron_testing.seeded.authors.program_run import paced, run_once  # noqa: PLC0415
    from heron_testing.seeded.cluster import Program  # noqa: PLC0415
    from heron_testing.seeded.faults import draw_faults, targets_of  # noqa: PLC0415
    from heron_testing.seeded.forked_run import forked  # noqa: PLC0415

    bind_to_parent()
    spec = read_spec(Path(sys.argv[1]), ProgramSpec)
    program = Program(
        decode_topology(spec.topology, "the command"),
        decode_packing_plan(spec.packing, "the command"),
        Path(spec.package),
        spec.settings,
        spec.drivers,
    )

    def run(present: Program, seed: int, faults: tuple[Fault, ...] = ()) -> Left:
        return forked(lambda: run_once(present, seed, faults, spec.limit_s))

    name, mode = program.definition.name, str(setting(program.definition.config, TOPOLOGY_RELIABILITY_MODE))
    first = run(program, spec.seed)
    if first.state != "finished":
        return _cannot_compare(name, first, spec.limit_s)
    program = paced(program, first)
    one, other = run(program, spec.seed), run(program, spec.seed + _OTHER_ORDER)
    found = order_findings(one, other)
    faults: tuple[Fault, ...] = ()
    if spec.faults:
        faults = draw_faults(spec.seed, targets_of(program.packing, ()), within_s=max(1.0, one.lasted_s))
        found += faulty_findings(one, other, run(program, spec.seed, faults), mode)
    return _report(name, spec.seed, faults, found, one)


def _cannot_compare(name: str, left: Left, limit_s: float) -> int:
    if left.state == "running":
        print(f"{name} has not ended after {limit_s:g} simulated seconds; let its spouts call end(), or set --timeout")
    else:
        print(f"{name} {left.state} without any fault:", *left.errors, sep="\n  ")
    return 1


def _report(name: str, seed: int, faults: Sequence[Fault], found: Sequence[Finding], one: Left) -> int:
    for each in faults:
        print(f"  {each}")
    for task in sorted(one.connections):
        print(f"note: {task} connects to something outside, whose changes are not compared")
    for finding in found:
        print(finding)
    print(f"{name} with seed {seed}: {len(found)} findings" if found else f"{name} with seed {seed}: nothing differs")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())

"""Pure planning: a topology becomes a logical plan, a packing plan and a physical plan; no I/O, no processes."""

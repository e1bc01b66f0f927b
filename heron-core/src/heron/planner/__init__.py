"""Pure planning: a topology becomes a logical plan, a packing plan and a physical plan; no I/O, no processes.

Reading order:

- plans: `verify` (what a topology must be) with `shed_check` (what shedding needs), `logical_plan`, `packing_plan`
  (instances, their containers, the ids of new tasks), `physical_plan` (members, routes, tasks upstream and
  downstream), `regions` (components that streams connect)
- what a packing reads: `resource_map` (the resources that a topology asks for) with `amounts`
- keys: `key_encoding` (the bytes of a key; refuses other types), `key_group`, `key_owners` (the task of each group),
  `key_balance` (groups that move for even loads)
- changes of a running topology: `plan_update` (other tasks), `runtime_config` (other settings, and which may change),
  `code_change` (other code)
"""

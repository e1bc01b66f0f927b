"""A model of a running topology, for tests of health policies: the loop of the health manager runs on its clock.

| module | contents |
|---|---|
| `fluid_model` | the steady state of a topology: rates, costs and parallelism give its metrics |
| `running_model` | a topology over time: loads change, tuples wait, an update takes a while |
| `managed_model` | a running model whose policy acts, in the loop of the health manager |
| `scenarios`, `day` | steps of the load, and a day of it; what a policy makes of them |
| `manager_harness`, `restart_policy` | a health manager with a store of records that can fail, for tests of its loop |

It needs the extra ``heron-testing[health]``.
"""

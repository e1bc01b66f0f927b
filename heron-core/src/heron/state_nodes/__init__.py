"""The schemas of the state nodes: every process reads and writes a node through the module that this table names.

| node | module | written by |
|---|---|---|
| TOPOLOGY, PACKING_PLAN | `plans` | the command that submits the topology |
| PHYSICAL_PLAN | `plans` | the topology manager |
| EXECUTION_STATE | `execution_state` | the command that submits the topology |
| SCHEDULER_LOCATION | `scheduler_location` | the same command; schedulers through `heron.driver_kit.scheduler_job` |
| KEYS | `topology_keys` | the command that submits the topology |
| TMANAGER_LOCATION | `tmanager_location` | the topology manager, which holds the node |
| REPORT | `report` | the topology manager at the end; the command that removes the run |
| HOSTS | `host_report` | the health manager |
| HOST_BLOCKS | `host_blocks` | the judge of hosts (`examples/hosts.py`); commands that block hosts |
| HEALTH | `health_records` | the health manager; commands that pause, resume or approve |

LOCK has no schema, because only its hold counts. CONTAINER belongs to `heron_scheduler_kit.managed`.
`heron.driver_kit.large_values` reads and writes PART. CHECKPOINTS is reserved.

The rules of the documents are in `document`. No module here calls a state manager.
"""

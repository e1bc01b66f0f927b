"""The topology manager. One leads each topology: it keeps the physical plan and decides when the topology is over.

The pure files hold its knowledge (`membership`, `task_table`, `process_reports`, `metrics_store`,
`back_pressure_reports`) and its decisions (`topology_state`, and `leader`, which turns events into `instructions`). The
other files do I/O: `lease`, `state_store` with `plan_record`, `plan_publisher`, `topology_end`, and `service`. `main`
joins them.
"""

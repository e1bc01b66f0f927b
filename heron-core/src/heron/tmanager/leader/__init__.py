"""The decisions of the leading topology manager. Pure: events in, instructions out.

Reading order: `leader` and `instructions`; what it knows (`knowledge`): `membership` (stream managers, and the plan
that follows), `task_table`, `process_reports`, `back_pressure_reports`, `long_call_reports`, `key_reports`,
`user_error_table`; what it decides: `topology_state` (the life of a topology), `checkpoint_progress` with
`checkpoint_run`, `pending_checkpoint` and `restores`, `update_progress`, `code_progress`; what it tells:
`status_parts`, `back_pressure_events`, `task_questions`.
"""

"""The contracts that plugins implement: one file per family, and the hook specifications.

In: calls of the engine and of commands, on the threads that each contract names. Out: answers of drivers. All families
have `driver` (what a driver is), `options` and `families`. Some contracts have their values in other files:
`health_values` and `health_section` (`health`); `inspected_task`, `task_stacks`, `task_profile`, `task_memory` and
`task_tuples` (`inspector`); `tracing` (`metricsink`). `typed_values` decodes documents.
"""

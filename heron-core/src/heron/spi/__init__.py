"""The contracts that plugins implement: one file per family, and the hook specifications.

In: calls of the engine and of commands, on the threads that each contract names. Out: answers of drivers. All families
have `driver` (what a driver is), `options` and `families`. Values of a contract have files of their own: `health_values`
and `health_section` for `health`; `inspected_task`, `task_stacks`, `task_profile`, `task_memory` and `task_tuples` for
`inspector`; `tracing` for spans of `metricsink`; `column_serializer` for `serializer`. `typed_values` decodes documents.
"""

"""What each path takes and answers: tables of operations, from which requests are routed and the API is described.

In: a request that was admitted. Out: an answer, or an error that names the parameter. `http` calls it, on the event
loop. What costs more than some milliseconds gets a thread of `calls`.

Reading order: `operations` (the table of ``/api/v1``) and `parameters` (what a request may ask); paths that are not in
that table: `task_routes`, `action_routes`, `history_path`, `query_path`, and `heron_routes` for scripts that were
written for Heron Tracker. `metrics_wait` (the first request for metrics), `problems` (errors as documents), `openapi`
(the same tables as a document).
"""

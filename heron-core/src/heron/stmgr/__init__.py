"""The stream manager: one process per container, which routes segments between its instances and its peers.

Reading order:

- `main` starts it, and `stream_manager` joins all parts on one event loop
- pure modules decide: `local_tasks`, `router` (where segments go), `outlet` (what waits for a task) with
  `outlet_paces`, `back_pressure` (which spouts a culprit throttles), `ack_routing`, `ack_outcomes` and `ledger`
  (roots), `peer_reach` (which peers are silent), `task_questions`
- the links own the sockets: `link_context` (what they share), `instance_links`, `peer_links`, `peer_hub`,
  `peer_session`, `peer_moves` (sessions that move to new keys)
- `pressure_reports` (says why a task is a culprit, and reports it), `question_relay` (passes questions to tasks)
- what others see: `counters`, `event_buffer`, `stmgr_metrics`
"""

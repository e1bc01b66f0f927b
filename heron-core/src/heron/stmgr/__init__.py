"""The stream manager: one process per container, which routes segments between its instances and its peers.

Pure modules decide: `router`, `outlet`, `ack_routing`, `ack_outcomes`, `ledger`, `back_pressure`, `peer_reach`. The
links (`instance_links`, `peer_links`, `peer_hub`, `peer_session`) own the sockets. `pressure_reports` and
`question_relay` pass on what others ask or have to know, and `stream_manager` joins all.
"""

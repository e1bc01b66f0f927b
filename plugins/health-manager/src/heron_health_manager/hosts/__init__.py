"""Bad hosts: what a topology reports of its hosts, and which hosts are blocked for all topologies.

Reading order: `host_signs` (from measurements to signs), `host_reporter` (writes them, and sees which containers are on
blocked hosts), `judge` (from the reports of all topologies to the list). `host_signs` and `judge` are pure.
"""

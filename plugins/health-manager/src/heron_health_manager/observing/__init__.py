"""From a running topology to observations.

In: the answers of a topology manager. Out: frozen observations, with their plan, samples of metrics, and restarts of
the last minutes. The commands and the process call it in their main threads.

Reading order: `observing` (plan, status and metrics become plain values), `bounds` (those of the profile become part of
the plan), `restart_history` (counts that only grow become recent restarts).
"""

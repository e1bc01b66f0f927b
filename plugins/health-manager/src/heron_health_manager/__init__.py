"""Finds out what ails a running topology, and what would help.

In: the status, metrics and plan of a topology, once per second. Out: diagnoses with the actions that would help,
records of decisions, updates and restarts. Two commands and one process use it: `command` (`heron health`) and
`explain_command` (`heron explain`) in the process of the user, and `manager_process` in container 0 of a topology.
The policies `ds2_policy`, `slo_policy` and `dhalion_policy` are drivers of the family health: lists of the parts below.

Reading order of the rooms, in the direction of the data: `observing`, `sensors`, `diagnosing`, `sizing`, `objectives`;
then what uses a policy: `managing` decides and acts, `explaining` says it in words, and `hosts` reports bad hosts.
"""

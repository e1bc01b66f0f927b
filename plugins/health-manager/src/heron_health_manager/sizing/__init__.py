"""The number of tasks that a topology needs, by the arithmetic of DS2. Pure.

In: measurements of a topology. Out: the parallelism of all components, diagnoses of too few or too many tasks, and the
update that corrects them. Policies call it, in the thread of a round.

Reading order: `sizing` (the arithmetic), `provisioning` (diagnoses and actions that follow from it), `policy_options`
(the options that policies share, among them the wanted utilisation).
"""

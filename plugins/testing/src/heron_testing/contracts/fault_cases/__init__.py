"""The cases about faults: a process that dies, writers that race, a system that is away, full or silent.

In: a driver, and the `Faults` that its flags ask for. Out: classes of cases, from which the suites inherit. pytest runs
them in its main thread; what dies or races is a process of `parts`.

One file per family, in any order: `statemgr_faults`, `scheduler_faults`, `uploader_faults`, `checkpoint_faults`,
`metricsink_faults`, `store_faults`.
"""

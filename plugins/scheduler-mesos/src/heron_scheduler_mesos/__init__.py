"""The scheduler ``mesos``: containers of topologies as tasks of a framework of Apache Mesos."""

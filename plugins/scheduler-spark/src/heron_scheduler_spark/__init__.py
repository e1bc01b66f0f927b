"""The containers of a topology as long-running tasks of a Spark application.

In: the packing plan of a job, and requests to start and end containers. Out: executors on the workers of a cluster, and
their logs and ends. Four processes use it: the command (`scheduler`, and `probe` for `heron doctor`), the supervisor of
a job (`supervisor`, `spark_executors`, `driver_process`), the driver that holds the application (`spark_driver`), and a
Python worker of Spark for each container.

Reading order: `scheduler`, `supervisor`, `spark_executors`, `driver_process`, `spark_driver`; then the rooms:
`application` (in the driver), `worker` (in a worker), `messages` between the processes, `settings` (what the profile
says, as Spark wants it); `probe`.
"""

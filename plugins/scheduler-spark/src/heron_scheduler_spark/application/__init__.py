"""What the driver process does: it holds the Spark application, and orders containers from it.

In: requests of the supervisor, messages of tasks, reports of Spark. Out: Spark jobs, one for each container, and what
became of them. `spark_driver` runs it. The order server has the main thread. One thread makes calls into the JVM, and
each Spark job has a thread, because these calls may take as long as the JVM pauses.

Reading order: `order_server` (it combines requests and reports), `orders` (what a task is told), `spark_jobs` (the
calls into Spark), `application` (the Spark application), `cluster_check` with `cluster_view` (whether the cluster can
hold the job), `spark_failure` (a failed Spark job as text).
"""

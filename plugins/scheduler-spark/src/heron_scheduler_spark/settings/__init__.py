"""The section of a profile and what follows from it for Spark. Pure, except `master_check` and `network`.

In: the section of the profile, a container of a packing plan. Out: settings of Spark, requests for containers, specs
without secrets. All four processes use it.

Reading order: `options` (the section), `master` (the kind of the cluster), `master_check` (before a JVM starts),
`network` (addresses), `spark_settings`, `container_request` (cores and memory of a container), `redacted_spec` (secrets
stay out of what Spark carries), `shipped_code` (files that Spark copies to a worker).
"""

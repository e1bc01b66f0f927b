"""Real servers for tests: installed once per user, started on the loopback address, ended with the tests.

In: the name of a fixture in a test. Out: a server that answers, and the classes with which a test kills and starts it.
pytest loads `pytest_plugin` in every run; the fixtures import a server when a test asks for it, and run in the main
thread of pytest.

There is one file per server, with the name of its fixture or of the server, so a reader knows the file. No server knows
another.

- the fixtures: `pytest_plugin`, with `serving` (a server for a session, or the reason why there is none)
- servers: `carbon`, `distributedlog`, `etcd`, `hdfs`, `kafka`, `kubernetes`, `nginx`, `nomad`, `oci_registry`,
  `postgresql`, `prometheus`, `redis`, `s3`, `schema_registry`, `scribe`, `slurm`, `spark`, `yarn`, `yarn_services`,
  `zookeeper`
- servers that are written here from a published contract (decision 090): `aurora`, `ecs`, `marathon` and `mesos` are
  the tests' side; `aurora_parts`, `ecs_parts`, `marathon_parts` and `mesos_parts` are the servers
- what these share: `contract_server` (the tests' side), `http_service` (requests and faults), `container_processes`
  (containers) with `container_shim`, `reconciled_state` (a state in a file, and the thread that acts on it)
- what a test needs besides: `chromium` (a browser), `network` (hosts with links that break), `faketime` (another time),
  `multilang` (Storm's libraries for components in other languages), `storm` (its libraries for Java), `scribe_clients`
  (programs that log to Scribe), `logrotate` (rotated logs)
- `process_kubelet`: a node of Kubernetes, whose Pods are processes
- below them: `server_process` (a process that ends with pytest) with `bound_exec`, `install` (the cache), `hadoop`,
  `namespace` (of hosts), `kafka_topics`, `log_streams`, `absence` (the end of a test that this machine cannot run)
"""

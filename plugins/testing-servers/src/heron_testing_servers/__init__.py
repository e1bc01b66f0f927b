"""Real servers for tests: installed once per user, started on the loopback address, ended with the tests.

In: the name of a fixture in a test. Out: a server that answers, and the classes with which a test kills and starts it.
pytest loads `pytest_plugin` in every run; the fixtures import a server when a test asks for it, and run in the main
thread of pytest.

The package is flat: one file per server, with the name of its fixture or of the server, so a reader knows the file. No
server knows another.

- the fixtures: `pytest_plugin`, with `serving` (a server for a session, or the reason why there is none)
- servers: `carbon`, `etcd`, `hdfs`, `kafka`, `kubernetes`, `nginx`, `nomad`, `postgresql`, `prometheus`, `redis`, `s3`,
  `scribe`, `slurm`, `spark`, `yarn`, `yarn_services`, `zookeeper`
- what a test needs besides: `chromium` (a browser), `network` (hosts with links that break), `faketime` (another time)
- `process_kubelet`: a node of Kubernetes, whose Pods are processes
- below them: `server_process` (a process that ends with pytest) with `bound_exec`, `install` (the cache), `hadoop`,
  `namespace` (of hosts), `kafka_topics`, `absence` (the end of a test that this machine cannot run)
"""

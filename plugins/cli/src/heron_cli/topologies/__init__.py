"""The topologies of a profile: what state manager and scheduler report about them, questions to them, changes.

In: a name, and the open drivers of a profile. Out: frozen values, and changed nodes, jobs and logs. `heron_cli.client`
is the public face; `heron_cli.launch` and the health manager call this package directly.

- `environment`: a chosen profile and its open drivers; `run_nodes`: the names of topologies and the nodes of a run;
  `progress`: the steps of a long operation; `hosts`: bad hosts, which schedulers avoid
- `running`: one running topology
- `runs`: all runs of a profile, also those that are over
- `logs`: the logs of a run
- `checkpoint_list` and `package_store`: what a profile stores for topologies
- `profile_search`: under which profile a topology runs; `diagnostics`: the checks of ``heron doctor``
"""

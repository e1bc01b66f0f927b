"""The scheduler driver ``aurora``: containers of topologies as instances of a job of Aurora."""

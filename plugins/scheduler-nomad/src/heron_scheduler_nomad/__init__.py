"""The scheduler driver ``nomad``: containers of topologies as groups of a Nomad job."""

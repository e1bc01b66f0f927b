"""The pages of ``heron ui``: the topologies of profiles in a browser."""

"""The `heron` command: loads a topology, submits it, watches it."""

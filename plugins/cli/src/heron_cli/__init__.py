"""The `heron` command, and the Python client that it is built on."""

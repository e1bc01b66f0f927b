"""What tests of topologies and plugins stand on: contract suites, a fake clock, fixtures (``heron-core[testing]``)."""

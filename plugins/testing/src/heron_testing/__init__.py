"""Contract suites, fakes and fixtures for tests of topologies and plugins (distribution ``heron-testing``)."""

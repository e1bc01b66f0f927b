"""Real servers for tests: installed once per user, started on the loopback address, ended with the tests."""

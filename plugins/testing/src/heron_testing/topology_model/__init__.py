"""A model of a running topology, for the tests of the health manager."""

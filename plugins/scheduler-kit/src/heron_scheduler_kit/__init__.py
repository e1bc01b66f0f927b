"""The shared parts of schedulers that keep each job running with a supervisor process."""

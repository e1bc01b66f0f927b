"""The logs of a run on this machine."""

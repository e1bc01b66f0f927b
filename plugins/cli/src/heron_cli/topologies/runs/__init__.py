"""The runs of a profile: found, listed, ended and removed."""

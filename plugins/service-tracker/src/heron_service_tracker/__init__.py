"""A service that shows the topologies of several profiles over HTTP; `heron tracker` starts it."""

"""Topologies of a profile: what the state manager and the scheduler report about them, questions to them, changes.

`heron_cli.client` is the public face of this package.
"""

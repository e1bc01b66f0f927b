"""Keeps the state of Heron topologies in etcd."""

"""The scheduler driver ``kubernetes``: containers of topologies as Pods of two StatefulSets."""

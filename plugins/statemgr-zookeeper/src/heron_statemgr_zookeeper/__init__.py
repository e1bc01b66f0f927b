"""The state manager ``zookeeper``. Nodes are znodes of an ensemble; held nodes are ephemeral znodes."""

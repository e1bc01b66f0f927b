"""The state manager ``zookeeper``: nodes are znodes of an ensemble, held ones are ephemeral."""

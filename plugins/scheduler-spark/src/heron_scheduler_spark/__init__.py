"""The containers of a topology as long-running tasks of a Spark application."""

"""What drivers share that use Apache Spark: the check of its Java, and the start of a context."""

"""What drivers share that keep files in HDFS, over WebHDFS: options, operations, and errors with remedies."""

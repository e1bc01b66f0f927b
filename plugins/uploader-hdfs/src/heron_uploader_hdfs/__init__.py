"""The uploader ``hdfs``: packages are files in HDFS, named by their content."""

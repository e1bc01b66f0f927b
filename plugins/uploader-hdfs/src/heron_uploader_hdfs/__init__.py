"""The uploader ``hdfs``: packages are files of an HDFS, named by their content."""

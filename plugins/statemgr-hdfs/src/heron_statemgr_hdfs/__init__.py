"""The state manager ``hdfs``: nodes are files of an HDFS, changed by renames and held by leases."""

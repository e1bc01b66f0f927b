"""The state manager ``hdfs``. Nodes are files in HDFS; a change is a rename, a hold is a lease."""

"""The state manager ``localfs``. Nodes are files of this machine; a write is a rename, a hold is a file lock."""

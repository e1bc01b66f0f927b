"""The state manager ``localfs``: nodes are files of this machine, written by rename and held by file locks."""

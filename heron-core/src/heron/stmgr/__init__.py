"""The stream manager, one per container: reads segments from its instances and peers, writes them to both.

Pure files first (`outlet`, `router`, `peer_outlets`, `end_markers`), then the links that own sockets, then the shell.
"""

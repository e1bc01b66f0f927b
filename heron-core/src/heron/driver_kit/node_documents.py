"""State nodes of drivers: a node holds one JSON object with the number of its format.

The rules are those of the core's own nodes, so a version that is too old refuses what it would misread.
"""

from heron.state_nodes.document import decode_node, encode_node

__all__ = ["decode_node", "encode_node"]

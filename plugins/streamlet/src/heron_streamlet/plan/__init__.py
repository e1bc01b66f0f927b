"""The pipeline as plain values: operators in a graph, and the stages into which they are fused.

In: operators with their inputs. Out: a graph without contradictions, and stages without a shuffle inside. Pure: no
engine, no thread. `api` makes the graph; the compilers of engines call `fuse`.

Reading order: `operators` (what a node does), `graph` (nodes, and what is refused), `stages` (fusion, and the rows
between stages).
"""

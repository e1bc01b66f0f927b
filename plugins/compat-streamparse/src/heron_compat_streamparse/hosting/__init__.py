"""A component of a streamparse project inside an instance: a bolt and a spout of Heron that own the author's object.

Reading order: `author` (both sides), `tuples`, `hosted_component` (what travels in the configuration), `storm_context`,
`emitted_values`, `reported_metrics`, `hosted_bolt`, `hosted_spout`.
"""

"""Runs streamparse projects: the packages `streamparse` and `pystorm`, served to such a project alone.

Reading order: `served_packages` (how the names are found), `project` (config.json, options), `specs`, `hosting` (a
component inside an instance), `components` (what authors derive from), `child_component`, `topology`.
"""

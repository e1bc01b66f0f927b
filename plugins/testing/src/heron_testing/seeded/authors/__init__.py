"""``heron run --simulate --seed``: an author's topology on simulated machines, with faults, and what it got wrong.

Reading order: `program_command` (called by the command), `__main__` (its child), `program_run` (one run), `effects`
(what a run does outside of the topology), `findings` (the differences between runs).
"""

"""Keeps the results of suites that `./dev test` leaves out, by the content of what each suite depends on.

`docs/decisions/019-results-by-content.md` says why, and what a key covers.
"""

"""Windows, event time, and the operators that keep state for each key; the same on every engine.

In: elements with event time. Out: rows for windows, new states of keys, results of closed windows. Pure: the engine
keeps states and calls in order. `plan` has the operators as values, and `runtime` calls them.

Reading order: `window` (what authors choose), `event_time` (which elements are late), `fold` (values become a result),
`failed_window` (a fold fails), `window_assignment` (before the shuffle), `keyed_operators` (behind it).
"""

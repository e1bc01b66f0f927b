"""From observations to answers: the types of the API, and the pure functions that make its values.

In: frozen observations. Out: typed answers, from which `openapi` makes the description of the API. No clock, no file,
no socket. `paths` calls it on the event loop; a watch makes the flow of a topology in its own thread.

Reading order: `answers` (the types) with `answer_parts` (how they are made); `flow_answers` with `flow` (the graph and
the rows of tasks); `trouble` (what is wrong, in sentences); `health_answer` (decisions of the health manager);
`traces_answer`; `letters_answer` (dead letters); `checkpoint_answers`; `heron_answers` (the same values as
Heron Tracker answers with them).
"""

"""New code for a running topology: ``heron update --code`` and ``heron run --reload``.

Reading order: `code_update` (the steps, from the file to the last task), `running_code` (the package that runs now),
`component_digest` (which components have other code), `new_code` (what may differ), `state_check` (whether the new code
can read the saved state), `canaries` (which tasks change first) and `task_health` (whether they work as well as the
others; pure).
"""

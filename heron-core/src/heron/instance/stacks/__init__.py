"""Where the threads of this process are: their stacks, what they wait for, and whose code that is.

The gateway thread looks, so it sees a task thread that is blocked. Failures of user code and observers use the same
names.

Reading order: `code_origin` (whose code), `source_line`, `thread_usage` (what the kernel says), `thread_stacks`,
`long_calls` (calls that last too long).
"""

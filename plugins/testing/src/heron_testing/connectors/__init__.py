"""What the contract suites of connectors are made of. `heron_testing.contracts.source` and `sink` are the suites.

| module | contents |
|---|---|
| `programs` | the pipelines under test: `read_source` and `write_sink`, which an author calls in a file |
| `feeds` | what an author provides: `SourceFeed` puts records into the server, `SinkTarget` reads what was written |
| `records` | the records of a test, and the sinks that write down what arrived |
| `gated_source` | a source that gives no more records than the test wants |
| `flows` | a run of a program: records are put, let through and awaited |

It needs the extra ``heron-testing[sandbox]``. Tasks import `programs`, `records` and `gated_source`.
"""

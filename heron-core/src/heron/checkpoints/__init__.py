"""Checkpoints: the names and contents of the objects that a checkpoint store keeps.

| object | what it holds | written by |
|---|---|---|
| ``TOPOLOGY/RUN/NUMBER/task-T`` | the payloads that task T has saved for this checkpoint | the instance of the task |
| ``TOPOLOGY/RUN/NUMBER/manifest`` | the place of each payload (`CheckpointManifest`) | the topology manager |

A checkpoint exists when it has a manifest. A payload may be in an object of an older checkpoint, because a task saves
only the key groups that have changed.

Reading order: `manifest`, `archive` (saves, loads and deletes), `load_retries` (loads again while the store is away),
`compatibility` (whether a topology can start from a checkpoint).
"""

"""The commands: one file each that parses options, calls the client and prints the answer.

In: the words behind `heron`. Out: lines or JSON on stdout, messages on stderr, an exit code. `heron_cli.main` imports a
command when it is called, so a command imports only what it needs. The package is flat: a reader knows the name of the
command, and the file has it.

Shared: `options` (the profile, and the client that a command opens), `completion` (names that a shell offers),
`task_argument`, `file_arguments`. Services of other distributions use `options` too. The commands, by what they do:

- start a topology, or show what would start: `run`, `submit` (with `manifests`), `plan`
- look at topologies: `list`, `status`, `logs`, `metrics`, `trace`
- look into a task: `stack`, `profile`, `memory`, `inspect`
- change a topology: `activate`, `restart`, `update`, `kill`
- look after what is stored and installed: `checkpoints`, `dead_letters`, `packages`, `plugins`, `profiles`, `doctor`,
  and after machines: `hosts`
- change the keys of a topology: `keys`
"""

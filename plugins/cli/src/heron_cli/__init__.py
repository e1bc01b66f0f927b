"""The `heron` command, and the Python client that it is built on.

In: words of a command line, or calls of the client by a program. Out: text and JSON for people and programs, a job for
a scheduler, questions to a running topology. Called by the script `heron`, by services and by programs of users.

The rooms, from the one that knows all others to those that know none:

- `main`, then `commands` with `command_group` and `command_entries`: the words of the command line; `entry_points`
- `foreground`: `heron run`, which follows its topology to the end; `interrupts`: Ctrl-C as a flag
- `view`: values as text for people
- `client`: the Python API; `profile_client`: the part of it that most commands need
- `launch`: from the author's file to a job of a scheduler, and new tasks for a running topology
- `topologies`: what the state manager, the scheduler and a topology manager report, and changes of it
- `catalog`: the installed drivers; `profiles`: which of them are chosen, with their options
"""

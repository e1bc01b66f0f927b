"""The topology manager. One leads each topology: it keeps the physical plan and decides when the topology is over.

In: registrations, reports and metrics of all processes, and commands. Out: plans, answers, orders. One thread.

- `main` joins the parts; `topology_manager` is the shell: it reads the socket, calls the leader and carries out its
  instructions; `messages` checks who may send what; `command_requests` answers commands; `task_relay` passes questions
  to tasks
- `state`: the state nodes, the lease, and everything else that does I/O
- `leader`: the decisions. Pure: events in, instructions out
- `metrics`: the newest metrics and traces of every process
"""

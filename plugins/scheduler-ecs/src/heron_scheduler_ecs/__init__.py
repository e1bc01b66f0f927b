"""The scheduler driver ``ecs``: containers of topologies as services of Amazon ECS."""

"""What packings share: drafts of plans, the capacity of containers, a search for room, moves between containers."""

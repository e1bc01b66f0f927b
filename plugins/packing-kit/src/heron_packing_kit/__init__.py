"""What packings share: drafts of plans, a search for room, moves between containers.

`capacity` is for packings that fill containers up to a limit (`ffd`, `rcrr`); `roundrobin` sizes its containers itself.
"""

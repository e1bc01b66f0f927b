"""The scheduler driver ``marathon``: containers of topologies as apps of a group of Marathon."""

"""Finds the installed drivers and observers, and checks whether they work.

In: entry points of installed distributions, and folders of ``--plugin-path``. Out: drivers by family and name, and what
checks found. Called by everything that needs a driver. A driver is called through `third_party`, so that each of its
exceptions is one of ours.

Reading order: `drivers` (one driver by family and name), `other_plugins` (observers, services, compat plugins),
`compat_entries` (the plugin of a program), `plugin_path`, `third_party`, and the checks of two commands:
`plugin_check`, `profile_check`.
"""

"""Profiles: one YAML file names the driver of each family with its options, and the settings of the engine.

In: the name of a profile, files, the environment, ``--set``. Out: a `Profile`, or all mistakes with their places. The
callers are the modules that open drivers. The caller's `Resolver` finds drivers, so this package needs no catalog.

Reading order: `located` (a value and its place), `yaml_file`, `search` (the file of a profile and the files that it
extends), `layers` (merges their sections), `changes` (the settings of the environment and the command line),
`references` (resolves ``${…}``), `section` (a driver's section against its schema), `health_choice`, `reading` (all of
this for a profile), `listing` (shows the result), `overrides` (the options of one command). Reading continues after a
mistake, and `findings` collects all mistakes.
"""

from heron_cli.profiles.findings import Problem
from heron_cli.profiles.layers import ENGINE, SINGLE, STORE
from heron_cli.profiles.listing import ListedProfile, ListedSetting, list_settings
from heron_cli.profiles.reading import ALL_FAMILIES, Profile, ProfileReading, load_profile, read_profile
from heron_cli.profiles.search import ProfileEntry, profile_entries, profile_names
from heron_cli.profiles.section import Resolver

__all__ = [
    "ALL_FAMILIES",
    "ENGINE",
    "SINGLE",
    "STORE",
    "ListedProfile",
    "ListedSetting",
    "Problem",
    "Profile",
    "ProfileEntry",
    "ProfileReading",
    "Resolver",
    "list_settings",
    "load_profile",
    "profile_entries",
    "profile_names",
    "read_profile",
]

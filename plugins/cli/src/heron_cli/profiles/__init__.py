"""Profiles: one YAML file says which driver serves each family, with that driver's options, and the engine's settings.

From a name to drivers, in the order of the files: `search` finds the file and what it extends, `layers` lays one over
the other, `changes` adds what the environment and the command line say, `references` puts in what ``${…}`` stands for,
`section` finds a driver and holds its section against the schema, `reading` makes the whole of it, `listing` shows it.
Nothing stops at the first mistake: all are `findings`.
"""

from heron_cli.profiles.findings import Problem
from heron_cli.profiles.layers import SINGLE
from heron_cli.profiles.listing import ListedProfile, ListedSetting, list_settings
from heron_cli.profiles.reading import ALL_FAMILIES, Profile, ProfileReading, load_profile, read_profile
from heron_cli.profiles.search import ProfileEntry, profile_entries, profile_names
from heron_cli.profiles.section import Resolver

__all__ = [
    "ALL_FAMILIES",
    "SINGLE",
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

"""Profiles: one YAML file says which driver serves each family, with that driver's options, and the engine's settings.

From a name to drivers, in the order of the files: `search` finds the file and what it extends, `layers` lays one over
the other, `changes` adds what the environment and the command line say, `references` puts in what ``${…}`` stands for,
`section` finds a driver and holds its section against the schema, `reading` makes the whole of it, `listing` shows it.
Nothing stops at the first mistake: all are `findings`.
"""

from heron.kernel.profiles.findings import Problem
from heron.kernel.profiles.layers import SINGLE
from heron.kernel.profiles.listing import ListedProfile, ListedSetting, list_settings
from heron.kernel.profiles.profile import Profile
from heron.kernel.profiles.reading import ProfileReading, load_profile, read_profile
from heron.kernel.profiles.search import ProfileEntry, profile_entries, profile_names
from heron.kernel.profiles.section import Resolver

__all__ = [
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

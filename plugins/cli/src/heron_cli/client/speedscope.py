"""A profile in the file format of speedscope, a viewer of profiles that runs in a browser."""

from __future__ import annotations

import msgspec

from heron.spi.task_profile import TaskProfile

__all__ = ["speedscope_file"]

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"  # the format demands it; nothing reads it


def speedscope_file(profile: TaskProfile) -> bytes:
    """Return the JSON document: one profile of the time on a processor, and one of the time off it."""
    task = f"{profile.component}/{profile.task_id}" if profile.task_id else profile.component  # a sum of tasks
    document = {
        "$schema": _SCHEMA,
        "name": f"{profile.topology}: {task}",
        "exporter": "heron",
        "activeProfileIndex": 0,
        "shared": {
            "frames": [
                {"name": f"{each.function} [{each.origin}]", "file": each.file, "line": each.line}
                for each in profile.frames
            ]
        },
        "profiles": [
            _sampled(f"{task} on a processor", [(each.frames, each.on_s) for each in profile.stacks]),
            _sampled(f"{task} off a processor", [(each.frames, each.off_s) for each in profile.stacks]),
        ],
    }
    return msgspec.json.encode(document)


def _sampled(name: str, stacks: list[tuple[tuple[int, ...], float]]) -> dict[str, object]:
    with_time = [each for each in stacks if each[1] > 0]
    return {
        "type": "sampled",
        "name": name,
        "unit": "seconds",
        "startValue": 0,
        "endValue": sum(seconds for _, seconds in with_time),
        "samples": [frames for frames, _ in with_time],
        "weights": [seconds for _, seconds in with_time],
    }

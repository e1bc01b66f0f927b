"""What ``./dev quick`` and ``./dev test`` run: sections side by side, with their progress."""

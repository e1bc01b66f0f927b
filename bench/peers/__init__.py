"""Word counts on other systems, each in an environment of its own, beside ours in one run."""

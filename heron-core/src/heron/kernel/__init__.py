"""The parts of the engine that several processes share: settings, packages, user code, hooks, role processes."""

"""Parts of a topology before it is started: streams, specs of components, and what an instance cannot run."""

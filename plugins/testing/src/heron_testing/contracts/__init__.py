"""One contract suite per driver family; a driver's own test is a subclass with a few fixtures."""

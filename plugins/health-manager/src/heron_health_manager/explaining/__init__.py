"""From symptoms to causes in words: what `heron explain` knows of a topology, and what follows from it."""

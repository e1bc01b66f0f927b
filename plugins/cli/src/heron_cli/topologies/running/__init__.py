"""One running topology: questions to it, and changes of it."""

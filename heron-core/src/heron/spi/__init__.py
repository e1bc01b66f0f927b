"""The contracts that plugins implement: one file per family, and the hook specifications."""

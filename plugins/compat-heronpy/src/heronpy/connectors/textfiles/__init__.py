"""Sources that read text files."""

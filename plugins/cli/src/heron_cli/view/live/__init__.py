"""What a command shows while it works."""

"""The commands: one file each that parses options, calls the client and prints the answer."""

"""From the author's file to a topology and the files of its program."""

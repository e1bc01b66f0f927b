"""What a task answered about its inside, as text and as pictures."""

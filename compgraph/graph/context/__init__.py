"""What holds for the code inside a ``with`` statement: recording, scopes of names, locks that survive a fork."""

"""Tasks without the person: histories of earlier sessions, directions between tasks, one decision word a session."""

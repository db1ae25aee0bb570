"""Tasks without the person: histories of earlier sessions, directions between tasks, decision words."""

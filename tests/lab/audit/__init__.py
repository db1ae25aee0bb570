"""The audit from outside: planted mechanisms, correct ones, and what breaks."""

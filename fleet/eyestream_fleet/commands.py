"""The command that a fleet adds to `eyestream`."""

__all__ = ["COMMANDS"]

COMMANDS = {
    "shard": (
        "eyestream_fleet.command",
        "a worker of a fleet: one partition of a log in, private chunks out, each once",
    ),
}
"""Module and help text of each command, by its name."""

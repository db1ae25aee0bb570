"""The commands that a fleet adds to `eyestream`."""

COMMANDS = {
    "shard": (
        "eyestream_fleet.command",
        "a worker of a fleet: one partition of a log in, private chunks out, each once",
    ),
    "enrol": ("eyestream_fleet.enrolling", "add devices to a fleet that runs, or remove them"),
    "fleet-demo": (
        "eyestream_fleet.demo.command",
        "a fleet on this machine: three servers, workers, simulated devices, and kills on demand",
    ),
}
"""Module and help text of each command, by its name."""

"""The command that this distribution adds to `eyestream`."""

COMMANDS = {
    "openxr": ("eyestream_openxr.command", "gaze of programs that use OpenXR: install the layer, show released gaze"),
}
"""Module and help text of each command, by its name."""

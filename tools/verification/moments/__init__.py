"""What an application can read from when messages come: `python -m tools.verification.milliseconds`."""

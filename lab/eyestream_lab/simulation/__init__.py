"""People who do not exist, made after figures that are learned from a corpus. Offline."""

"""A worker of a fleet: it reads one partition of a log, again after a crash, and releases each chunk once."""

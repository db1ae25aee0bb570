"""Every benchmark still runs."""

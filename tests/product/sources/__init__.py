"""Sources of rows in the sidecar's own process."""

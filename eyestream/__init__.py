"""Privacy sidecar for eye tracking."""

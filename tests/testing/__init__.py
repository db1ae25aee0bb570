"""The harness itself."""

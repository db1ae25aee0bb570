"""The world on one seed: whole lives of a sidecar and of a fleet in virtual time, and an outsider as their judge."""

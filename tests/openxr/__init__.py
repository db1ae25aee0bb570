"""The layer for OpenXR, its source and its bridge; against a runtime of ours, and the loaders that can be installed."""

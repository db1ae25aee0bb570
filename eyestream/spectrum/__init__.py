"""Pure: transforms of signals."""

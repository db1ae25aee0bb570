"""The order of effects."""

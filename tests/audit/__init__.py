"""The audit of mechanisms that others bring."""

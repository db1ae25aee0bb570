"""The version of this program, in one place; the packaging reads it here."""

__all__ = ["VERSION"]

VERSION = "0.2.0"

"""The version of this program, in one place; the packaging reads it here."""

VERSION = "0.2.0"

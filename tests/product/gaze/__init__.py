"""Gaze to events to rows."""

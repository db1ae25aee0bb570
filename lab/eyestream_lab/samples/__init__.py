"""Gaze samples of recordings, changed as people change them today: with no guarantee."""

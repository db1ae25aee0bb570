"""Tests; a folder for each room. A test imports eyestream, tests.rigs and helpers of its own folder."""

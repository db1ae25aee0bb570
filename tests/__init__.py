"""Tests; a folder for each room. A test imports eyestream, eyestream.testing and helpers of its own folder."""

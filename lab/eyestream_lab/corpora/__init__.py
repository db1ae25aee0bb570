"""Whole corpora: people by tasks in, the same out, with a claim. Public face: `eyestream_lab.datasets`."""

"""The study: what a mechanism costs in utility, and what it stops an attacker from doing. Offline.

Every part cuts its work into cells, each a call with plain settings that gives plain records; a cell's records are kept
in one file named by a hash of what went in. What is released goes through `eyestream.core`, the same code as the
sidecar's. Noise comes from the operating system and has no seed; splits, classifiers and the baselines without a
guarantee have seeds.
"""

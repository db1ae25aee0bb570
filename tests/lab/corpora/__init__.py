"""Tests of releases of whole corpora."""

"""Tests of how releases of corpora are judged."""

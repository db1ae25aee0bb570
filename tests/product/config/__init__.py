"""Configurations of today and of version 0.1.0."""

"""Tests of tasks without the person."""

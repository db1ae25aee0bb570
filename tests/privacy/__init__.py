"""Mechanisms, noise, balls, budgets."""

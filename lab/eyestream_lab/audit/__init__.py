"""Epsilon estimated from outside: what comes out for worst-case neighbours, counted, and a lower bound on epsilon."""

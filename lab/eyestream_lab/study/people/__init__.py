"""Identification by attackers who know the whole program, on people who did not calibrate it."""

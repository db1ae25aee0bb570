"""Worth of releases of corpora: who is recognised, and which activity, by attackers that learn from a release."""

"""What releases of corpora are worth: who is recognised, and which activity, by attackers that learn from a release."""

"""Real brokers and links that do wrong; who may read what."""

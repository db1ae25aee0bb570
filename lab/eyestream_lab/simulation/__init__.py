"""What is learned from a corpus, and people made after it. Offline."""

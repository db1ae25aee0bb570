"""What published texts say, and what holds."""

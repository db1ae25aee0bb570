"""What the product does with recordings."""

"""What the product does with recordings, never with live data."""

"""The laboratory: it measures the product on recordings and simulated people. The product runs without it."""

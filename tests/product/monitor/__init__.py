"""The page: what it shows in a real browser, and what nobody gets out of it."""

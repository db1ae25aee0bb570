"""Pure: domain, balls, noise, mechanisms and budgets."""

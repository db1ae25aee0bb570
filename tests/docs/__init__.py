"""Documents are compared with the code, and their examples are run."""

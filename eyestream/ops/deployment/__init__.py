"""A whole deployment on a Linux host: what it consists of, writing it, renewing it, and looking whether it stands."""

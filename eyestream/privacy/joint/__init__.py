"""Joint transform coding of whole chunks: code books, the schedule of a session, and how both are learned. Pure."""

"""What a session tells about one chunk."""

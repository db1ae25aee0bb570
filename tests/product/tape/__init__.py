"""What is the same on every processor, at every epsilon; and releases of version 0.1.0 under a recorded tape."""

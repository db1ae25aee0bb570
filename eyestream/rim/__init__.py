"""Effects: sockets, files, the clock. What is decided about data is decided above, in the pure rooms."""

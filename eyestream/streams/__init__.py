"""What a stream is: whose, of which features, at which rate, and how far one second of gaze reaches. Pure."""

"""Questions about released gaze, and who answers them."""

"""Questions about released gaze, and answers that cost nothing: an application, beside the sidecar."""

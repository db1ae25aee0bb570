"""``eyestream demo``: broker, gaze, sidecar and application in one process, over the real wire."""

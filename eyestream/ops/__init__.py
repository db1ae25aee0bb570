"""Running it: checks of a deployment, metrics, the service manager, a process that keeps its memory to itself."""

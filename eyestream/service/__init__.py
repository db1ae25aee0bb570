"""The async rim: links to brokers, the sidecar, and what stands around it."""

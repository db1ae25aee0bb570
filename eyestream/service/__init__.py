"""The async rim: links to brokers, the sidecar, and what stands around it."""

import logging

logging.getLogger("eyestream").addHandler(logging.NullHandler())  # an application decides where our lines go

"""A worker on a log that is played again: killed between any two effects, and on logs and disks that misbehave."""

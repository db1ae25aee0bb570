"""A fleet on one machine, to be looked at: servers, workers and devices that do not exist, and kills on demand."""

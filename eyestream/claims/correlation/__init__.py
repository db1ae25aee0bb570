"""Loss of one chunk by a whole session when the adversary knows a class of processes: epsilon', bounded."""

"""What a whole session tells about one chunk when the adversary knows a class of processes: epsilon', bounded."""

"""Where rows come from beside the raw broker: one file and one registry entry for each kind of source."""

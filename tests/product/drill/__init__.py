"""The drill: a new kind of release and a new front end, each whole in a folder of its own, go through every door."""

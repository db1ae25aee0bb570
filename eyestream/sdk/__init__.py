"""The kit of trackers and applications: publish raw rows, subscribe to private chunks, replay a recording."""

"""What trackers and applications import: publish raw rows, subscribe to private chunks, replay a recording."""

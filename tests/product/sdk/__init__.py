"""What applications import: moments, events, discovery, and chunks without asyncio."""

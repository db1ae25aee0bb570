"""Messages and addresses: bytes to typed values and back. Pure, bounded, no I/O."""

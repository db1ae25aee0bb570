"""One device's life without I/O: rows and the time go in, chunks that fall due come out. Pure, no clock of its own."""

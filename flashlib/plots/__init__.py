"""Draw arrays, states and traces; nothing here runs a kernel (book)."""

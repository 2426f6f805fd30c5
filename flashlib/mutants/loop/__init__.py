"""The plain loop of the engine, and wrong copies of it (book)."""

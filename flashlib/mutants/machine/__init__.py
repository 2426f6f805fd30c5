"""Wrong programs for the machine, and the checks that catch them (book)."""

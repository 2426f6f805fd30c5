"""Build the masks of the decode kernel: validity, window, active (chapters 18, 19)."""

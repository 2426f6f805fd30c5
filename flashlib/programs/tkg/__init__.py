"""Decode attention in small parts, one per step and per kind of cache (chapter 20)."""

"""Prefill attention: queries on partitions, keys in sections (chapter 23)."""

"""Who knows what of whom: overlays by which status travels, and how readers discount old status."""

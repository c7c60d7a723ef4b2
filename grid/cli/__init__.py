"""The commands of `grid`, one module each; only those that need heavy libraries import them."""

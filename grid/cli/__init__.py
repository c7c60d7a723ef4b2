"""The commands of `grid`, a module each. Heavy libraries are imported by those that need them."""

"""Emulated grids held against what mathematics says of them: `grid verify`."""

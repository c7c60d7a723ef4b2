"""A distributed emulator of grids of virtual organizations on Ray actors."""

__version__ = "0.1.0"

"""Runs in the formats of tools that other people have."""

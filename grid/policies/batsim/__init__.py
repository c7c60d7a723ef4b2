"""Clusters whose decisions come from a scheduler that speaks Batsim's protocol, version 4."""

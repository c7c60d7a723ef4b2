"""Runtimes that drive the entities: one process, or windows of virtual time on Ray actors."""

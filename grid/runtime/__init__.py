"""What drives the entities: one process, or windows of virtual time on Ray actors."""

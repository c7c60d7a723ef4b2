"""One pool of processors under a queue policy that is compiled: whole windows in one call."""

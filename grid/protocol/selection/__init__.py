"""Which resource of the grid a Local Scheduler takes for a job."""

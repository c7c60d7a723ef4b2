"""Rules of forwarding: what a Local Scheduler does with a job, given what the selection chose."""

"""The state of one cluster between two messages: machines, jobs on them, the policy's plans."""

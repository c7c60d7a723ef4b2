"""Policies that keep a whole plan: which job, on which machine, when (EG)."""

"""Convergent Scheduling: heuristics add up to a job-machine matrix, a matching makes a plan of it.

Two papers: C07 (Capannini, Baraglia, Puppin, Ricci, Pasquali: A Job Scheduling Framework for Large
Computing Farms, 2007) and CS2 (Convergent Scheduling 2.0).
"""

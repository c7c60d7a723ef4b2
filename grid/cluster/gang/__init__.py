"""Gangs on processors with a queue each: every CPU of every machine is a processor (GM III to V).

The paper's processors have clock rates; here a clock of 2000 MHz, on which its processing times are
given, is a CPU of the job's `reference_mips` (Eq. 1).
"""

"""placeholder"""

from grid.experiment.claims import Paper

PAPER = Paper("C07", "", (), lambda _: iter(()))

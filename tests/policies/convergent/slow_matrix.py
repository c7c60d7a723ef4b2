"""The job-machine matrix of both papers, written down formula by formula, pair by pair."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from grid.model.time import NEVER, SECOND_US
from grid.policies.interface import ClusterView

Matrix = npt.NDArray[np.float64]
Pair = Callable[[int, int], float]


class SlowMatrix:
    """Jobs i by slot in the order of rows (running, then waiting), machines m by position."""

    def __init__(self, view: ClusterView) -> None:
        self.view, self.jobs, self.machines = view, view.jobs, view.machines
        self.now = view.now / SECOND_US
        self.slots = [int(slot) for slot in (*view.running, *view.queue)]
        self.runs = {int(slot) for slot in view.running}
        self.licenses = range(len(view.license_copies_free))
        holders = {(int(self.jobs.machine[i]), n) for i in self.runs for n in self.asked(i)}
        self.copies = [
            int(view.license_copies_free[n]) + sum(1 for _, held in holders if held == n)
            for n in self.licenses
        ]

    def asked(self, i: int) -> list[int]:
        return [n for n in self.licenses if int(self.jobs.licenses[i]) >> n & 1]

    def affine(self, i: int) -> list[int]:
        """M_Aff of the job: CPUs, software, copies, and the machine it is bound to."""
        if any(self.copies[n] == 0 for n in self.asked(i)):
            return []
        return [
            m
            for m in range(len(self.machines.cpus))
            if self.machines.cpus[m] >= self.jobs.processors[i]
            and all(int(self.machines.licenses[m]) >> n & 1 for n in self.asked(i))
            and self.jobs.bound_machine[i] in (-1, m)
        ]

    def elapsed(self, i: int, m: int) -> float:
        if self.jobs.machine[i] != m:
            return 0.0
        kept = self.seconds(self.jobs.done_us[i]) * self.jobs.reference_mips[i]
        seconds = float(kept / self.machines.mips[m])
        return seconds + (self.now - self.seconds(self.jobs.start_us[i]) if i in self.runs else 0)

    def remaining(self, i: int, m: int) -> float:
        """CS2 Eq. 1, of the instructions that remain if the job goes on with machine m."""
        own = int(self.jobs.machine[i])
        everything = self.seconds(self.jobs.estimate_us[i]) * self.jobs.reference_mips[i]
        left = everything - self.seconds(self.jobs.done_us[i]) * self.jobs.reference_mips[i]
        if i in self.runs:
            until = self.seconds(self.jobs.expected_end_us[i]) - self.now
            left = until * self.machines.mips[own]
        keeps = own == m or (own >= 0 and self.jobs.checkpointable[i])
        return float((left if keeps else everything) / self.machines.mips[m])

    def age(self, i: int) -> float:
        return self.now - self.seconds(self.jobs.submit_us[i])

    def deadline(self, i: int) -> float:
        due = int(self.jobs.deadline_us[i])
        return math.inf if due == NEVER else self.seconds(due)

    def rho(self, n: int) -> float:
        """CS2 Eq. 9, 10; of a license without copies as if there were one."""
        return sum(1 for i in self.slots if n in self.asked(i)) / max(self.copies[n], 1)

    def longest(self) -> float:
        return max((self.remaining(i, m) for i in self.slots for m in self.affine(i)), default=0.0)

    def seconds(self, time_us: int) -> float:
        return int(time_us) / SECOND_US

    def matrix(self, *heuristics: Pair) -> Matrix:
        """The sum of the heuristics over M_Aff, -inf elsewhere."""
        matrix = np.full((len(self.slots), len(self.machines.cpus)), -np.inf)
        for row, i in enumerate(self.slots):
            for m in self.affine(i):
                matrix[row, m] = sum(heuristic(i, m) for heuristic in heuristics)
        return matrix


def cs2_matrix(view: ClusterView, weights: dict[str, float]) -> Matrix:
    """CS2 Eq. 1 to 13."""
    matrix = SlowMatrix(view)
    longest = matrix.longest()

    def f(i: int, m: int) -> float:
        last = matrix.deadline(i) - matrix.remaining(i, m)
        end = matrix.now + matrix.remaining(i, m)
        if end <= last:
            return 0.0
        return (end - last) / matrix.remaining(i, m) if end <= matrix.deadline(i) else 1.0

    def deadline(i: int, m: int) -> float:
        if math.isinf(matrix.deadline(i)):
            return 0.0
        mean = sum(f(i, k) for k in matrix.affine(i)) / len(matrix.affine(i))
        return weights["deadline"] * (1 - f(i, m)) * mean

    def overhead(i: int, m: int) -> float:
        elapsed = matrix.elapsed(i, m)
        return weights["overhead"] * elapsed / max(matrix.remaining(i, m), elapsed)

    def licenses(i: int, _m: int) -> float:
        asked = matrix.asked(i)
        if not asked:
            return 0.0
        return weights["licenses"] * min(sum(matrix.rho(n) for n in asked) / len(asked), 1.0)

    def wait(i: int, m: int) -> float:
        return weights["wait"] * (1 - matrix.remaining(i, m) / longest)

    def aging(i: int, m: int) -> float:
        return weights["anti_aging"] * matrix.age(i) / (matrix.age(i) + matrix.remaining(i, m))

    return matrix.matrix(deadline, overhead, licenses, wait, aging)


def cs2007_matrix(
    view: ClusterView,
    weights: dict[str, float],
    minimum: float,
    k: float,
    links: list[float],
    f1_read: str = "words",
) -> Matrix:
    """C07 4.1; `links` holds the bandwidth of each machine's link in megabits a second."""
    matrix = SlowMatrix(view)
    longest = matrix.longest()
    maximum = weights["deadline"]

    def f1(i: int, m: int) -> float:
        nxtime = matrix.remaining(i, m)
        extime, due = matrix.now + nxtime, matrix.deadline(i)
        t = due - k * nxtime
        if extime > due:
            return minimum if f1_read == "formula" else maximum
        if extime <= t:
            return minimum
        a = (maximum - minimum) / (due - t)
        return a * (extime - t) + minimum

    def deadline(i: int, m: int) -> float:
        spare = {n: maximum - f1(i, n) for n in matrix.affine(i)}
        urgency = sum(f1(i, n) for n in matrix.affine(i))
        d = sum(spare.values())
        late_everywhere = maximum if f1_read == "words_max" else minimum
        return urgency * spare[m] / d if d else late_everywhere

    def w(i: int) -> float:
        asked = [(matrix.rho(n), n) for n in matrix.asked(i)]
        critical = sum(rho for rho, _ in asked if rho > 1)
        return len(matrix.licenses) * critical + sum(rho for rho, _ in asked if rho <= 1)

    def licenses(i: int, _m: int) -> float:
        highest = max(w(j) for j in matrix.slots)
        return weights["licenses"] * w(i) / highest if highest else 0.0

    def transfer(i: int, m: int) -> float:
        own = int(matrix.jobs.machine[i])
        home = own if own >= 0 else int(matrix.jobs.user[i]) % len(links)
        megabits = float(matrix.jobs.input_mb[i]) * 8
        return 0.0 if home == m else megabits / min(links[home], links[m])

    def input_(i: int, m: int) -> float:
        total = sum(transfer(i, n) for n in matrix.affine(i))
        return weights["input"] * (1 - (transfer(i, m) / total if total else 0.0))

    def wait(i: int, m: int) -> float:
        return weights["wait"] * (1 - matrix.remaining(i, m) / longest)

    def overhead(i: int, m: int) -> float:
        return weights["overhead"] if i in matrix.runs and matrix.jobs.machine[i] == m else 0.0

    def aging(i: int, _m: int) -> float:
        return weights["anti_aging"] * matrix.age(i)

    return matrix.matrix(deadline, licenses, input_, wait, overhead, aging)

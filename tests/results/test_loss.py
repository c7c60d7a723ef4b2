"""Loss of capacity of several clusters as one, by hand and by a slow sum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.model.records import ClusterHistory, Levels
from grid.results.series import loss_of_capacity, series
from tests.results.results_tables import TWO_VOS, job, table


def history(cluster: int, processors: int, *rows: tuple[int, int, int]) -> ClusterHistory:
    columns = np.array(rows, np.int64).reshape(-1, 3)
    return ClusterHistory(cluster, processors, Levels(*columns.T))


def test_idle_processors_are_lost_while_a_gang_waits_that_fits() -> None:
    """GM Eq. 6: of 4 processors for 10 s, 3 idle for 2 s and 2 for 5 s while 2 could be used."""
    one = history(0, 4, (0, 1, 2), (2, 2, 2), (7, 3, 2), (8, 4, 2), (9, 4, 5), (10, 0, 5))
    assert loss_of_capacity([one]) == pytest.approx(100 * (3 * 2 + 2 * 5) / (4 * 10))


def test_idle_processors_of_all_clusters_are_lost() -> None:
    """A gang of three waits in a cluster of three; one processor idles here and two there."""
    here = history(0, 3, (0, 2, 3), (4, 0, 4))
    there = history(1, 5, (0, 3, 6), (4, 0, 6))
    assert loss_of_capacity([here]) == 0.0
    assert loss_of_capacity([here, there]) == pytest.approx(100 * 3 / 8)
    assert loss_of_capacity([here, there], by_cluster=True) == 0.0
    assert loss_of_capacity([]) is None


ROWS = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=8
)


@given(ROWS, ROWS)
def test_loss_of_capacity_against_a_sum_over_time(
    here: list[tuple[int, int, int]], there: list[tuple[int, int, int]]
) -> None:
    clusters = [sorted(here, key=lambda row: row[0]), sorted(there, key=lambda row: row[0])]
    first = min(rows[0][0] for rows in clusters)
    last = max(rows[-1][0] for rows in clusters)
    lost = apart = 0
    for moment in range(first, last):
        idle, smallest = 6, 99
        for rows in clusters:
            now = [row for row in rows if row[0] <= moment]
            if now:
                idle -= now[-1][1]
                apart += 3 - now[-1][1] if now[-1][2] <= 3 - now[-1][1] else 0
                smallest = min(smallest, now[-1][2] if now[-1][2] <= 3 else 99)
        lost += idle if smallest <= idle else 0
    both = [history(0, 3, *clusters[0]), history(1, 3, *clusters[1])]
    for found, expected in (
        (loss_of_capacity(both), lost),
        (loss_of_capacity(both, by_cluster=True), apart),
    ):
        share = None if first == last else pytest.approx(100 * expected / (6 * (last - first)))
        assert found == share


def test_series_of_clusters_for_gangs() -> None:
    """North idles for two of four seconds while a gang of one waits; south runs no gangs."""
    second = 1_000_000
    north = history(0, 4, (0, 4, 5), (second, 2, 1), (3 * second, 4, 5), (4 * second, 0, 5))
    rows = table([job(1, 0, 0, 4, processors=4)])
    found = series(rows, TWO_VOS, points=2, histories=[north])
    assert found.busy_cpus[:2].tolist() == [3.0, 3.0]
    assert found.lost_cpus[:2].tolist() == [1.0, 1.0]
    assert np.isnan(found.lost_cpus[2:]).all()

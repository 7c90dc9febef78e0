"""Paper "Data-driven windows", appendix H: scan statistics, by Naus (1982), against closed forms and simulation."""

from __future__ import annotations

from bisect import bisect_left
from itertools import permutations, product
from math import exp, factorial, prod, sqrt
from random import Random

import pytest

from panewise.frame.scan import scan_chance


def quiet_pairs(mean: float, windows: float) -> float:
    """The exact chance that no two points are within one window: n points leave n - 1 windows of room less."""
    room = [(n, windows - (n - 1)) for n in range(1, int(windows) + 2)]
    return exp(-mean * windows) * (1 + sum(mean**n * left**n / factorial(n) for n, left in room if left > 0))


@pytest.mark.parametrize("mean", [0.01, 0.2, 1.0, 3.0])
@pytest.mark.parametrize("windows", [2, 3])
def test_pairs_are_exact_where_the_whole_is_two_or_three_windows(mean: float, windows: int) -> None:
    """Naus: Q2 and Q3 are exact; for two points there is a closed form."""
    assert scan_chance(2, mean, windows) == pytest.approx(1 - quiet_pairs(mean, windows), abs=1e-12)


@pytest.mark.parametrize("windows", [4, 7.5, 20])
def test_pairs_are_close_beyond(windows: float) -> None:
    """Naus: the extrapolation to longer wholes is good to some thousandths."""
    for mean in (0.01, 0.1, 0.3, 1.0):
        assert scan_chance(2, mean, windows) == pytest.approx(1 - quiet_pairs(mean, windows), abs=0.004)


@pytest.mark.parametrize("windows", [2, 3, 5.5])
def test_single_points_are_exact(windows: float) -> None:
    """A window with a point in it exists where there is a point at all."""
    assert scan_chance(1, 0.3, windows) == pytest.approx(1 - exp(-0.3 * windows))
    assert scan_chance(0, 0.3, windows) == 1.0


def quiet(count: int, mean: float, windows: int) -> float:
    """The exact chance that no window holds so many points, by the number of points in each unit of the whole.

    As a window slides from one unit to the next, it trades points of the one for points of the other. It never holds
    too many where the numbers traded, each counted from a start of its own, never meet: Karlin and McGregor's
    determinant says how likely that is.
    """
    return exp(-mean * windows) * sum(
        mean ** sum(points) * apart(count, points) for points in product(range(count), repeat=windows)
    )


def apart(count: int, points: tuple[int, ...]) -> float:
    places = range(len(points))
    starts = [sum(count - n for n in points[place:-1]) for place in places]
    steps = [[starts[j] + points[j] - starts[i] for j in places] for i in places]
    return sum(
        sign(order) * prod(1 / factorial(steps[i][j]) for i, j in enumerate(order))
        for order in permutations(places)
        if all(steps[i][j] >= 0 for i, j in enumerate(order))
    )


def sign(order: tuple[int, ...]) -> int:
    return -1 if sum(a > b for n, a in enumerate(order) for b in order[n + 1 :]) % 2 else 1


@pytest.mark.parametrize("mean", [0.05, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("count", [2, 3, 4, 5, 8])
def test_two_and_three_windows_are_exact(count: int, mean: float) -> None:
    """Naus: Q2 and Q3 are no approximations."""
    assert scan_chance(count, mean, 2) == pytest.approx(1 - quiet(count, mean, 2), rel=1e-9, abs=1e-13)
    assert scan_chance(count, mean, 3) == pytest.approx(1 - quiet(count, mean, 3), rel=1e-9, abs=1e-13)
    assert 1 - scan_chance(count, mean, 3) == pytest.approx(quiet(count, mean, 3), rel=1e-6, abs=1e-13)


@pytest.mark.parametrize(("count", "mean"), [(3, 0.5), (4, 1.0), (5, 3.0)])
def test_four_windows_are_close(count: int, mean: float) -> None:
    """Naus: the first extrapolation errs by thousandths at most."""
    assert scan_chance(count, mean, 4) == pytest.approx(1 - quiet(count, mean, 4), abs=0.002)


def simulated(count: int, mean: float, windows: float, runs: int, random: Random) -> float:
    """How often a window of a simulated Poisson process holds so many points."""
    hits = 0
    for _ in range(runs):
        points, time = [], random.expovariate(mean)
        while time < windows:
            points.append(time)
            time += random.expovariate(mean)
        hits += any(bisect_left(points, start + 1) - n >= count for n, start in enumerate(points))
    return hits / runs


@pytest.mark.parametrize(
    ("count", "mean", "windows"), [(3, 0.5, 2), (5, 2.0, 3), (4, 1.0, 6), (5, 1.0, 10), (9, 3.0, 12), (12, 6.0, 4.5)]
)
def test_simulation_agrees(count: int, mean: float, windows: float) -> None:
    """Within four standard deviations of the simulation and the few thousandths that the approximation may err."""
    runs = 6000
    chance = scan_chance(count, mean, windows)
    error = 4 * sqrt(chance * (1 - chance) / runs) + 0.003
    assert simulated(count, mean, windows, runs, Random(7)) == pytest.approx(chance, abs=error)


def test_more_points_are_less_likely_and_longer_wholes_more() -> None:
    """A crowd is the stranger the greater it is, and the less strange the longer one looks."""
    by_count = [scan_chance(count, 2.0, 5) for count in range(1, 25)]
    assert by_count == sorted(by_count, reverse=True)
    by_windows = [scan_chance(6, 2.0, windows) for windows in range(2, 40)]
    assert by_windows == sorted(by_windows)


def test_extremes_are_probabilities_still() -> None:
    """Neither crowds that are certain nor impossible ones leave the range of a probability."""
    assert scan_chance(2, 800.0, 1e6) == 1.0
    assert scan_chance(5, 100.0, 3) == 1.0
    assert 0.0 <= scan_chance(400, 1.0, 1e6) < 1e-9

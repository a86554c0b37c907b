"""Closed forms of the normal distribution: what the lab's simulations must come out at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean, stdev

STANDARD = NormalDist()
FEWEST_VALUES = 2  # one value has no spread


def below(value: float) -> float:
    """P(z < value) for a standard normal z, exact far out in the lower tail too."""
    return math.erfc(-value / math.sqrt(2)) / 2


def outside(mean: float, spread: float, low: float, high: float) -> float:
    """Share of a normal distribution that lies below low or above high.

    >>> round(outside(0.0, 0.1, math.log(0.8), math.log(1.27)), 3)  # the article's 2.1 %
    0.021
    """
    if spread == 0:
        return float(mean < low or mean > high)
    return below((low - mean) / spread) + below((mean - high) / spread)


def students_t(degrees: int) -> float:
    """The 0.975 quantile of Student's t: how many standard errors a 95 % interval reaches.

    Exact for 1 and 2 degrees of freedom, else the expansion in 1 / degrees of Abramowitz and
    Stegun, 26.7.5, within 0.01 from 3 on.

    >>> [round(students_t(n), 2) for n in (1, 2, 4, 19)]
    [12.71, 4.3, 2.78, 2.09]
    """
    if degrees == 1:
        return math.tan(0.475 * math.pi)
    if degrees == FEWEST_VALUES:
        return 0.95 / math.sqrt(2 * 0.975 * 0.025)
    z = STANDARD.inv_cdf(0.975)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return sum(term / degrees**power for power, term in enumerate(terms))


def mean_interval(values: Sequence[float]) -> tuple[float, tuple[float, float] | None]:
    """Mean of independent values and its 95 % interval (Student's t); None for a single value."""
    mean = fmean(values)
    if len(values) < FEWEST_VALUES:
        return mean, None
    reach = students_t(len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return mean, (mean - reach, mean + reach)

"""From repetitions to a row: median, smallest, largest, ratio."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems in one unit. ratio: how much better ours is, above 1 if it is; of the medians.
    ratio_range: smallest and largest over pairs measured one after the other."""

    ours: float
    peer: float
    ratio: float
    ours_range: tuple[float, float]
    peer_range: tuple[float, float]
    ratio_range: tuple[float, float]


def compare(ours: Sequence[float], peer: Sequence[float], *, more_is_better: bool) -> Comparison:
    """Pairs of measurements, in the order they were made.

    >>> compare([2.0, 1.0, 1.0], [4.0, 4.0, 3.0], more_is_better=False).ratio
    4.0
    """
    if not ours or len(ours) != len(peer):
        raise ValueError(
            f"{len(ours)} measurements of ours and {len(peer)} of the peer; wanted pairs"
        )

    def better(one: float, other: float) -> float:
        above, below = (one, other) if more_is_better else (other, one)
        return above / below if below else float("inf")

    ratios = [better(a, b) for a, b in zip(ours, peer, strict=True)]
    return Comparison(
        ours=median(ours),
        peer=median(peer),
        ratio=better(median(ours), median(peer)),
        ours_range=(min(ours), max(ours)),
        peer_range=(min(peer), max(peer)),
        ratio_range=(min(ratios), max(ratios)),
    )


def turns(repetitions: int) -> list[tuple[str, str]]:
    """Who goes first: A B, B A, A B ..., so that a drift of the machine falls on both alike.

    >>> turns(3)
    [('ours', 'peer'), ('peer', 'ours'), ('ours', 'peer')]
    """
    return [
        ("ours", "peer") if number % 2 == 0 else ("peer", "ours") for number in range(repetitions)
    ]

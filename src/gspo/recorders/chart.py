"""A histogram of log s in a terminal, with clip ranges marked below it.

Bins are those of the record: symmetric-log, one character column or more a bin. Reads without
colour.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

HEIGHT = 8  # lines
BLOCKS = " ▁▂▃▄▅▆▇█"
MARGIN_CHARS = 9  # labels and the axis itself
WIDEST_BIN = 3  # characters
INSIDE, OUTSIDE = "green", "yellow"


@dataclass(frozen=True, slots=True)
class Band:
    """A range of log s to mark, in nats; the colours follow the first one."""

    label: str
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class LogRatioChart:
    """edges: bin edges in nats, rising; counts: responses, one fewer than edges."""

    edges: Sequence[float]
    counts: Sequence[int]
    bands: Sequence[Band] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        total = sum(self.counts)
        if not total:
            yield Text("no responses were trained on")
            return
        room = options.max_width - MARGIN_CHARS
        edges, counts = self._fitted(room)
        width = max(1, min(WIDEST_BIN, room // len(counts)))
        yield from _bars(edges, counts, width, total, self.bands[:1])
        yield _axis(edges, width)
        for band in self.bands:
            yield _band_line(band, edges, width, options.max_width)

    def _fitted(self, room: int) -> tuple[list[float], list[int]]:
        """The bins worth drawing: those with responses or bounds, merged by twos until they fit."""
        used = [bin for bin, count in enumerate(self.counts) if count]
        bounds = [x for band in self.bands for x in (band.low, band.high) if math.isfinite(x)]
        used += [_bin_of(bound, self.edges) for bound in bounds]
        first = max(min(used) - 1, 0)
        last = min(max(used) + 1, len(self.counts) - 1)
        edges, counts = list(self.edges[first : last + 2]), list(self.counts[first : last + 1])
        while len(counts) > max(room, 1):
            edges = [*edges[:-1:2], edges[-1]]
            counts = [sum(counts[bin : bin + 2]) for bin in range(0, len(counts), 2)]
        return edges, counts


def _bin_of(value: float, edges: Sequence[float]) -> int:
    return min(max(bisect_right(edges, value) - 1, 0), len(edges) - 2)


def _bars(
    edges: list[float], counts: list[int], width: int, total: int, bands: Sequence[Band]
) -> Iterator[Text]:
    largest = max(counts)
    eighths = [max(round(8 * HEIGHT * c / largest), 1) if c else 0 for c in counts]
    inside = [
        all(_bin_of(b.low, edges) <= bin <= _bin_of(b.high, edges) for b in bands)
        for bin in range(len(counts))
    ]
    for line in reversed(range(HEIGHT)):
        label = f"{largest / total:.0%}" if line == HEIGHT - 1 else ""
        text = Text(f"{label:>{MARGIN_CHARS - 2}} │", no_wrap=True)
        for bin, height in enumerate(eighths):
            block = BLOCKS[min(max(height - 8 * line, 0), 8)]
            text.append(block * width, style=INSIDE if inside[bin] else OUTSIDE)
        yield text


def _axis(edges: list[float], width: int) -> Text:
    """The base line, and below it 0 and the decades that have room."""
    num_chars = width * (len(edges) - 1)
    base, labels = ["─"] * num_chars, [" "] * (num_chars + MARGIN_CHARS)
    for value, position in _ticks(edges, width):
        label = "0" if value == 0 else f"{value:.0e}".replace("e-0", "e-").replace("e+00", "")
        start = position - len(label) // 2 + MARGIN_CHARS
        around = labels[max(start - 1, 0) : start + len(label) + 1]
        if start < 0 or start + len(label) > len(labels) or any(c != " " for c in around):
            continue
        labels[start : start + len(label)] = label
        base[position] = "┬"
    zero = f"{0:>{MARGIN_CHARS - 2}} └"
    return Text(f"{zero}{''.join(base)}\n{''.join(labels).rstrip()}", no_wrap=True)


def _ticks(edges: list[float], width: int) -> Iterator[tuple[float, int]]:
    """Where a label may stand: 0 first, then the decades outwards."""
    middle = _bin_of(0.0, edges)
    if edges[middle] < 0 < edges[middle + 1]:
        yield 0.0, middle * width + width // 2
    decades = [
        (edge, min(bin * width, width * (len(edges) - 1) - 1))
        for bin, edge in enumerate(edges)
        if edge and abs(math.log10(abs(edge)) - round(math.log10(abs(edge)))) < 1e-6
    ]
    yield from sorted(decades, key=lambda tick: abs(tick[0]))


def _band_line(band: Band, edges: list[float], width: int, max_width: int) -> Text:
    first = _bin_of(band.low, edges) * width
    last = _bin_of(band.high, edges) * width + width - 1
    left = "├" if math.isfinite(band.low) else "─"
    right = "┤" if math.isfinite(band.high) else "─"
    bar = left + "─" * (last - first - 1) + right if last > first else "│"
    line = f"{band.label:>{MARGIN_CHARS - 2}}  {' ' * first}{bar}"
    numbers = f"  {band.low:+.2g} … {band.high:+.2g}"
    joined = line + numbers if len(line + numbers) <= max_width else line
    return Text(joined, no_wrap=True)

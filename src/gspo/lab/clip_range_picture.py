"""Spread and share outside over length: the 1/sqrt(L) law, and what a fixed range makes of it."""

from __future__ import annotations

from collections.abc import Sequence

from gspo.lab.clip_range import Bands, Row
from gspo.lab.pictures import COLORS, DASHES, line, page, panels

RESPONSE, TOKEN, FAIR = 0, 1, 2  # colours
SPREADS = {"log_s_spread": RESPONSE, "token_spread": TOKEN}
SHARES = {
    "response_outside": RESPONSE,
    "token_outside": TOKEN,
    "response_outside_length_fair": FAIR,
}


def draw(rows: Sequence[Row], bands: Bands) -> str:
    """HTML. Marks are simulated, lines are the closed forms; one kind of line a sigma."""
    names = {
        "response_outside": f"response, fixed ({bands.fixed.low:g}, {bands.fixed.high:g})",
        "token_outside": f"token ({bands.token.low:g}, {bands.token.high:g})",
        "response_outside_length_fair": "response, length-fair",
    }
    figure = panels(["spread: log s of a response, log r of a token", "share outside the range"])
    for number, noise in enumerate(dict.fromkeys(row.noise for row in rows)):
        own = [row for row in rows if row.noise == noise]
        lengths = [row.length for row in own]
        for panel, curves in enumerate((SPREADS, SHARES), start=1):
            for field, color in curves.items():
                label = f"{names.get(field, field)}, sigma {noise.sigma:g}"
                exact = line(
                    lengths,
                    [getattr(row.exact, field) for row in own],
                    label,
                    color,
                    mode="lines",
                    line={"color": COLORS[color], "dash": DASHES[number % len(DASHES)]},
                    showlegend=field in names,
                )
                simulated = [getattr(row.simulated, field) for row in own]
                marks = line(lengths, simulated, label, color, mode="markers", showlegend=False)
                figure.add_trace(exact, 1, panel)
                figure.add_trace(marks, 1, panel)
    ticks = sorted({row.length for row in rows})
    figure.update_xaxes(type="log", title_text="tokens of a response", tickvals=ticks)
    figure.update_yaxes(
        type="log", dtick=1, exponentformat="power", title_text="nats", row=1, col=1
    )
    figure.update_yaxes(range=[-0.02, 1.02], row=1, col=2)
    return page(figure, "Independent token noise: marks simulated, lines in closed form")

"""Bars and histograms as inline SVG, drawn in the page's own colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assets.report_page.markup import escape, short

_ROW, _LABEL, _BAR, _VALUE = 24, 170, 420, 130
_STEP, _TOP, _HEIGHT = 44, 18, 120


def bars(rows: Sequence[tuple[str, float, str]], *, title: str) -> str:
    """Return horizontal bars.

    Args:
        rows: (label, length, what is written behind the bar).
        title: what is shown, for readers who cannot see it.
    """
    longest = max((length for _, length, _ in rows), default=0) or 1
    width, height = _LABEL + _BAR + _VALUE, _ROW * len(rows) + 6
    box = f'viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}"'
    parts = [f'<svg class="chart" {box}>']
    for index, (label, length, said) in enumerate(rows):
        y = index * _ROW + 4
        size = round(_BAR * length / longest, 1)
        parts += [
            f'<text class="label" x="{_LABEL - 8}" y="{y + 13}">{escape(label)}</text>',
            f'<rect class="track" x="{_LABEL}" y="{y}" width="{_BAR}" height="{_ROW - 7}" rx="3"/>',
            f'<rect class="bar" x="{_LABEL}" y="{y}" width="{size}" height="{_ROW - 7}" rx="3"/>',
            f'<text class="value" x="{_LABEL + _BAR + 8}" y="{y + 13}">{escape(said)}</text>',
        ]
    return "".join([*parts, "</svg>"])


def histogram(lengths: Mapping[str, int], *, unit: str, title: str) -> str:
    """Return the histogram of {"n": documents whose length is in [n, 2n)}, n a power of two."""
    powers = [int(key).bit_length() - 1 for key in lengths] or [0]
    bounds = [1 << power for power in range(min(powers), max(powers) + 1)]
    counts = [int(lengths.get(str(bound), 0)) for bound in bounds]
    highest = max(counts, default=0) or 1
    width, height = _STEP * len(bounds) + 16, _TOP + _HEIGHT + 38
    size_of = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    box = f'{size_of} role="img" aria-label="{escape(title)}"'
    parts = [f'<svg class="histogram" {box}>']
    for index, (bound, count) in enumerate(zip(bounds, counts, strict=True)):
        size = round(_HEIGHT * count / highest, 1)
        x, y = 8 + index * _STEP, round(_TOP + _HEIGHT - size, 1)
        middle = x + _STEP / 2
        parts.append(
            f'<rect class="bar" x="{x + 2}" y="{y}" width="{_STEP - 4}" height="{size}" rx="2"/>'
        )
        if count:
            parts.append(f'<text class="value" x="{middle}" y="{y - 4}">{short(count)}</text>')
        label = _power(bound)
        parts.append(f'<text class="label" x="{middle}" y="{_TOP + _HEIGHT + 14}">{label}</text>')
    note = f'<text class="note" x="8" y="{height - 5}">{escape(unit)}</text>'
    parts.append(f"{note}</svg>")
    return "".join(parts)


def _power(value: int) -> str:
    for unit in ("", "Ki", "Mi", "Gi"):
        if value < 1024:
            return f"{value}{unit}"
        value //= 1024
    return f"{value}Ti"

"""Draw who imports whom: `python -m tools.make.imports`, from the project's folder, writes docs/imports.svg.

Rooms are the folders of the three distributions, and those inside `core` and `rim`. They stand on five
floors; inside a floor, a room stands above what it imports. An arrow that a longer way of arrows implies is left out of
the drawing; the title of a room (hold the mouse over it) names all that it imports. Exit code 1 when an arrow points
up: an import from a lower floor to a higher one, or rooms that import one another in a circle.
"""

import argparse
import itertools
import math
import sys
from pathlib import Path
from xml.sax.saxutils import escape

import grimp

PACKAGES = ("eyestream", "eyestream_lab", "eyestream_fleet")
FLOORS = {
    "lab": "eyestream-lab: measures the product",
    "fleet": "eyestream-fleet: workers on a log",
    "entrance": "eyestream: what people call",
    "rim": "effects: sockets, files, the clock, processes",
    "pure": "decides: no socket, file, clock or loop",
}
RIM = {"rim", "sdk", "ops", "monitor"}
INSIDE = {"core": ("release", "chunking"), "rim": None, "lab": None}
"""Rooms that are drawn for themselves inside a folder; None: all."""
FILL = {"entrance": "#fdf3e1", "lab": "#f0f0f0", "fleet": "#eef3e2", "rim": "#e3eef8", "pure": "#f3eaf6"}
BOX_W, BOX_H, GAP_X, GAP_Y, MARGIN, LABEL_W = 116, 28, 18, 34, 14, 140

Arrow = tuple[str, str]
Rows = list[tuple[str, list[str]]]


def room_of(module: str) -> str:
    """The room that a module is in."""
    package, *parts = module.split(".")
    parts = parts if package == "eyestream" else [package.removeprefix("eyestream_"), *parts]
    if not parts:
        return package
    inside = INSIDE.get(parts[0], ())
    return ".".join(parts[:2]) if len(parts) > 1 and (inside is None or parts[1] in inside) else parts[0]


def floor_of(room: str) -> str:
    top = room.partition(".")[0]
    if top in {"eyestream", "cli"}:
        return "entrance"
    return "rim" if top in RIM else top if top in FLOORS else "pure"


def read() -> tuple[set[str], set[Arrow]]:
    """The rooms, and the imports from room to room."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    pairs = {
        (room_of(module), room_of(imported))
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
    }
    arrows = {(a, b) for a, b in pairs if a != b}
    folders = {"rim", "lab"} - {room for arrow in arrows for room in arrow}  # an `__init__` and nothing else
    return {room_of(module) for module in graph.modules} - folders, arrows


def rows_of(rooms: set[str], arrows: set[Arrow]) -> Rows:
    """(floor, rooms) from the top: each room above all that it imports, as far as no arrow points up."""
    rows: Rows = []
    for floor in FLOORS:
        left = {room for room in rooms if floor_of(room) == floor}
        while left:
            free = {room for room in left if not any(a in left for a, b in arrows if b == room)}
            row = sorted(free or {min(left)})  # a circle is broken at its first name; what closes it points up
            rows.append((floor, row))
            left -= set(row)
    return rows


def upward(rows: Rows, arrows: set[Arrow]) -> list[Arrow]:
    height = {room: i for i, (_, row) in enumerate(rows) for room in row}
    return sorted((a, b) for a, b in arrows if height[a] >= height[b])


def implied(arrows: set[Arrow]) -> set[Arrow]:
    """Arrows that a longer way of arrows implies."""
    beneath: dict[str, set[str]] = {}
    for a, b in arrows:
        beneath.setdefault(a, set()).add(b)

    def reaches(start: str, goal: str) -> bool:
        seen, todo = {start}, [room for room in beneath[start] if room != goal]
        while todo:
            room = todo.pop()
            if room == goal:
                return True
            if room not in seen:
                seen.add(room)
                todo += beneath.get(room, ())
        return False

    return {(a, b) for a, b in arrows if reaches(a, b)}


class Layout:
    """Places of rooms, and of the points at which long arrows pass the rows between their ends.

    Each row is ordered, and then spread, by the mean place of what its members are joined to in the row above or below,
    from the top and from the bottom by turns: the method of Sugiyama, Tagawa and Toda (1981) in its simplest form.
    """

    def __init__(self, rows: Rows, arrows: list[Arrow]) -> None:
        height = {room: i for i, (_, row) in enumerate(rows) for room in row}
        self.rows: list[list[str]] = [list(row) for _, row in rows]
        self.ways: dict[Arrow, list[str]] = {}
        self._joined: dict[str, list[str]] = {name: [] for row in self.rows for name in row}
        for a, b in arrows:
            way = [a]
            for i in range(height[a] + 1, height[b]):
                point = f"{a}>{b}@{i}"
                self.rows[i].append(point)
                self._joined[point] = []
                way.append(point)
            way.append(b)
            self.ways[a, b] = way
            for above, below in itertools.pairwise(way):
                self._joined[above].append(below)
                self._joined[below].append(above)
        self._row = {name: i for i, row in enumerate(self.rows) for name in row}
        self.x = {name: float(i * BOX_W) for row in self.rows for i, name in enumerate(row)}
        for turn in range(24):
            self._sweep(down=turn % 2 == 0, order=turn < 18)
        left = min(self.x[name] - self.half(name) for name in self.x)
        self.x = {name: x - left for name, x in self.x.items()}
        self.width = max(self.x[name] + self.half(name) for name in self.x)

    def half(self, name: str) -> float:
        """Half of the width that a room, or a passing arrow, takes."""
        return (0 if ">" in name else BOX_W / 2) + GAP_X / 2

    def _sweep(self, *, down: bool, order: bool) -> None:
        for i in range(len(self.rows)) if down else reversed(range(len(self.rows))):
            wanted = {}
            for name in self.rows[i]:
                near = [self.x[other] for other in self._joined[name] if (self._row[other] < i) == down]
                wanted[name] = math.fsum(near) / len(near) if near else self.x[name]
            if order:
                self.rows[i].sort(key=lambda name: (wanted[name], name))
            self._spread(self.rows[i], wanted)

    def _spread(self, row: list[str], wanted: dict[str, float]) -> None:
        """As near as can be to what is wanted, without overlap: isotonic regression by pooling neighbours."""
        start, starts = 0.0, []
        for name in row:
            starts.append(start + self.half(name))
            start += 2 * self.half(name)
        pools: list[list[float]] = []  # sum, count
        for name, offset in zip(row, starts, strict=True):
            pools.append([wanted[name] - offset, 1])
            while len(pools) > 1 and pools[-2][0] / pools[-2][1] > pools[-1][0] / pools[-1][1]:
                total, count = pools.pop()
                pools[-1] = [pools[-1][0] + total, pools[-1][1] + count]
        levels = [total / count for total, count in pools for _ in range(int(count))]
        for name, offset, level in zip(row, starts, levels, strict=True):
            self.x[name] = offset + level


def drawing(rows: Rows, arrows: set[Arrow]) -> str:
    """The picture as SVG."""
    up = upward(rows, arrows)
    drawn = sorted(arrows - implied(arrows) - set(up))
    layout = Layout(rows, drawn)
    width = round(LABEL_W + layout.width + 2 * MARGIN)
    height = len(rows) * (BOX_H + GAP_Y)
    at = {
        name: (LABEL_W + MARGIN + layout.x[name], i * (BOX_H + GAP_Y) + GAP_Y / 2)
        for i, row in enumerate(layout.rows)
        for name in row
    }
    imports = {room: sorted(b for a, b in arrows if a == room) for _, row in rows for room in row}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif">',
        "<title>Rooms of eyestream and their imports; written by tools/make/imports.py</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0L8,4L0,8z" fill="#44546a"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        *_floors(rows, width),
        *(_arrow(arrow, [at[name] for name in layout.ways[arrow]]) for arrow in drawn),
        *(_arrow(arrow, [at[arrow[0]], at[arrow[1]]], "#c0392b") for arrow in up),
        *(_box(room, imports[room], at[room]) for _, row in rows for room in row),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _floors(rows: Rows, width: int) -> list[str]:
    out, step = [], BOX_H + GAP_Y
    for floor, purpose in FLOORS.items():
        its = [i for i, (name, _) in enumerate(rows) if name == floor]
        if not its:
            continue
        top = its[0] * step
        out += [
            f'<rect x="0" y="{top + 2}" width="{width}" height="{len(its) * step - 4}" fill="{FILL[floor]}"/>',
            f'<text x="{MARGIN}" y="{top + 22}" font-size="15" font-weight="bold">{floor}</text>',
        ]
        lines = [""]
        for word in purpose.split():
            if len(lines[-1]) + len(word) > 20:
                lines.append("")
            lines[-1] += word + " "
        out += [
            f'<text x="{MARGIN}" y="{top + 38 + 13 * i}" font-size="11" fill="#444">{escape(line.strip())}</text>'
            for i, line in enumerate(lines)
        ]
    return out


def _arrow(arrow: Arrow, way: list[tuple[float, float]], colour: str = "#44546a") -> str:
    (x, y), rest = way[0], way[1:]
    path = f"M{x:.1f},{y + BOX_H:.1f}"
    y += BOX_H
    for i, (to_x, to_y) in enumerate(rest):
        bend = (to_y - y) / 2
        path += f"C{x:.1f},{y + bend:.1f} {to_x:.1f},{to_y - bend:.1f} {to_x:.1f},{to_y:.1f}"
        x, y = to_x, to_y
        if i < len(rest) - 1:
            y += BOX_H
            path += f"V{y:.1f}"
    return (
        f'<path data-from="{arrow[0]}" data-to="{arrow[1]}" d="{path}" fill="none" stroke="{colour}" '
        f'stroke-width="1.2" marker-end="url(#tip)"><title>{arrow[0]} imports {arrow[1]}</title></path>'
    )


def _box(room: str, imports: list[str], at: tuple[float, float]) -> str:
    x, y = at
    return (
        f'<g data-room="{room}" data-imports="{" ".join(imports)}">'
        f"<title>{room} imports {', '.join(imports) or 'nothing'}</title>"
        f'<rect x="{x - BOX_W / 2:.1f}" y="{y:.1f}" width="{BOX_W}" height="{BOX_H}" rx="5" fill="white" '
        f'stroke="#44546a"/><text x="{x:.1f}" y="{y + 19:.1f}" font-size="13" text-anchor="middle">{room}</text></g>'
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/imports.svg"), metavar="FILE")
    out = parser.parse_args().out
    rooms, arrows = read()
    rows = rows_of(rooms, arrows)
    out.write_text(drawing(rows, arrows), encoding="utf-8")
    print(f"{out}: {len(rooms)} rooms, {len(arrows)} arrows")
    up = upward(rows, arrows)
    for a, b in up:
        print(f"points up: {a} imports {b}", file=sys.stderr)
    sys.exit(1 if up else 0)


if __name__ == "__main__":
    main()

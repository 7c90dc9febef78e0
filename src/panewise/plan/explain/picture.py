"""A picture of a window manager's groups: the plane of ranges and slides, with a line through each sequence.

In the manner of "Subsuming windows" figure 7. Every mark, line and text carries a class that says what it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree import ElementTree as Xml

from panewise.core.time import UNITS, Domain, duration_text
from panewise.plan.rules.group_windows import GroupNode, WindowGroup, WindowManager, WindowRole, WindowShape

WIDTH, HEIGHT = 960, 560
#: The corners of the plane; what is right of it belongs to the legend.
LEFT, RIGHT, TOP, BOTTOM = 80, 760, 60, 500
#: More frames than this are drawn without names, and more groups than this have no line in the legend.
NAMED_FRAMES, LISTED_GROUPS = 60, 20

#: Colours that stay apart for colour-blind readers and in print; further groups begin again, told apart by number.
COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#332288",
    "#e69f00", "#882255", "#56b4e9", "#117733", "#999933",
)  # fmt: skip

STYLE = """
text { font: 12px sans-serif; fill: #222 }
.title { font-size: 16px; font-weight: bold }
.axis, .tick { stroke: #666; fill: none }
.grid { stroke: #e4e4e4 }
.edge { stroke-width: 1.5; fill: none; opacity: 0.8 }
.edge.piggybacked { stroke-dasharray: 3 3 }
.tick-label, .frame, .quotient { font-size: 10px }
.number { font-weight: bold }
"""


def picture(manager: WindowManager, title: str, domain: Domain = Domain.INTEGER) -> str:
    """An SVG document: seeds are squares, enclosing frames circles, piggybacked ones triangles on a dashed line with q.

    Sequences are lines in the order of their nodes, in one colour and with one number for each group. Lengths are
    written as the time domain has it.
    """
    title = "".join(letter for letter in title if letter.isprintable())  # XML has no way to write the others
    svg = Xml.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {WIDTH} {HEIGHT}"})
    Xml.SubElement(svg, "title").text = title
    Xml.SubElement(svg, "style").text = STYLE
    Xml.SubElement(svg, "rect", {"width": str(WIDTH), "height": str(HEIGHT), "fill": "white"})
    _text(svg, "title", LEFT, 30, title)
    plane = _Plane.around(manager.shapes, domain)
    plane.draw(svg)
    names = _Labels(domain, len(manager.shapes) <= NAMED_FRAMES)
    for group in manager.groups:
        _draw_group(svg, plane, group, names)
    _draw_legend(svg, manager)
    Xml.indent(svg)
    return Xml.tostring(svg, encoding="unicode")


@dataclass(frozen=True)
class _Plane:
    """Ranges to the right, slides upwards, both from zero."""

    widest: int
    longest: int
    domain: Domain

    @classmethod
    def around(cls, frames: tuple[WindowShape, ...], domain: Domain) -> _Plane:
        widest = max((frame.range for frame in frames), default=1)
        longest = max((frame.slide for frame in frames), default=1)
        return cls(widest, longest, domain)

    def x(self, range: int) -> float:
        return LEFT + (RIGHT - LEFT - 20) * range / self.widest

    def y(self, slide: int) -> float:
        return BOTTOM - (BOTTOM - TOP - 20) * slide / self.longest

    def at(self, frame: WindowShape) -> tuple[float, float]:
        return self.x(frame.range), self.y(frame.slide)

    def draw(self, svg: Xml.Element) -> None:
        """Grid, axes and their names."""
        for width in _ticks(self.widest, self.domain):
            x = self.x(width)
            _line(svg, "grid", (x, BOTTOM), (x, TOP))
            _line(svg, "tick", (x, BOTTOM), (x, BOTTOM + 5))
            _text(svg, "tick-label", x, BOTTOM + 18, duration_text(width, self.domain), anchor="middle")
        for slide in _ticks(self.longest, self.domain):
            y = self.y(slide)
            _line(svg, "grid", (LEFT, y), (RIGHT, y))
            _line(svg, "tick", (LEFT - 5, y), (LEFT, y))
            _text(svg, "tick-label", LEFT - 8, y + 4, duration_text(slide, self.domain), anchor="end")
        _line(svg, "axis", (LEFT, BOTTOM), (RIGHT, BOTTOM))
        _line(svg, "axis", (LEFT, BOTTOM), (LEFT, TOP))
        _text(svg, "axis-label", (LEFT + RIGHT) / 2, BOTTOM + 42, "range", anchor="middle")
        _text(svg, "axis-label", LEFT, TOP - 10, "slide", anchor="middle")


def _ticks(longest: int, domain: Domain) -> range:
    """At most ten round lengths up to the longest: one, two or five times a power of ten, of the unit that fits."""
    rough = -(-longest // 10)
    units = UNITS.values() if domain is Domain.TIMESTAMP else (1,)
    unit = max(size for size in units if size <= rough)
    power = 10 ** (len(str(rough // unit)) - 1)
    step = next(unit * power * times for times in (1, 2, 5, 10) if unit * power * times >= rough)
    return range(step, longest + 1, step)


class _Labels:
    """Writes frames and quotients beside their marks, as far as there is room."""

    def __init__(self, domain: Domain, wanted: bool) -> None:
        self._domain = domain
        self._wanted = wanted
        self._taken: list[tuple[float, float, float]] = []

    def frame(self, parent: Xml.Element, at: tuple[float, float], frame: WindowShape) -> None:
        x, y = at
        self.write(parent, "frame", x + 7, y + 13, self.shape_text(frame))

    def write(self, parent: Xml.Element, kind: str, x: float, y: float, words: str) -> None:
        width = 6.0 * len(words)
        x = min(x, RIGHT + 10 - width)  # the legend begins there
        free = all(x > right or x + width < left or abs(y - line) > 9 for left, right, line in self._taken)
        if self._wanted and free:
            self._taken.append((x, x + width, y))
            _text(parent, kind, x, y, words)

    def shape_text(self, frame: WindowShape) -> str:
        return f"<{duration_text(frame.range, self._domain)}, {duration_text(frame.slide, self._domain)}>"


def _draw_group(svg: Xml.Element, plane: _Plane, group: WindowGroup, names: _Labels) -> None:
    colour = COLOURS[group.number % len(COLOURS)]
    part = Xml.SubElement(svg, "g", {"class": "group", "id": f"group-{group.number}", "fill": colour, "stroke": colour})
    nodes = group.nodes
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (plane.at(node.frame) for node in nodes))
    Xml.SubElement(part, "polyline", {"class": "edge sequence", "points": path})
    for node in nodes:
        _draw_piggybacked(part, plane, group, node, names)
    for node in nodes:
        _mark(part, group.role(node.frame), plane.at(node.frame), names.shape_text(node.frame))
        names.frame(part, plane.at(node.frame), node.frame)
    x, y = plane.at(group.seed)
    _text(part, "number", x - 7, y - 7, str(group.number), anchor="end")


def _draw_piggybacked(part: Xml.Element, plane: _Plane, group: WindowGroup, node: GroupNode, names: _Labels) -> None:
    """What rides on a node, each joined to the one below it; q stands beside the line."""
    below = node.frame
    for guest in node.piggybacked:
        (x, low), (_, high) = plane.at(below), plane.at(guest)
        _line(part, "edge piggybacked", (x, low), (x, high))
        _mark(part, WindowRole.PIGGYBACKED, (x, high), names.shape_text(guest))
        quotient = group.quotient(guest)
        if quotient is not None:
            names.write(part, "quotient", x + 4, (low + high) / 2 + 4, f"q={quotient}")
        names.frame(part, (x, high), guest)
        below = guest


def _mark(parent: Xml.Element, role: WindowRole, at: tuple[float, float], words: str | None = None) -> None:
    """The shape of a role; the words, if any, are what browsers show under the pointer."""
    x, y = at
    match role:
        case WindowRole.SEED:
            shape = {"x": f"{x - 5:.1f}", "y": f"{y - 5:.1f}", "width": "10", "height": "10"}
            mark = Xml.SubElement(parent, "rect", shape)
        case WindowRole.ENCLOSING:
            shape = {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": "5", "fill": "white", "stroke-width": "2"}
            mark = Xml.SubElement(parent, "circle", shape)
        case WindowRole.PIGGYBACKED:
            corners = f"{x - 4:.1f},{y + 3:.1f} {x + 4:.1f},{y + 3:.1f} {x:.1f},{y - 4:.1f}"
            mark = Xml.SubElement(parent, "polygon", {"points": corners})
    mark.set("class", f"{'mark' if words else 'key'} {role.value}")
    if words:
        Xml.SubElement(mark, "title").text = words


def _draw_legend(svg: Xml.Element, manager: WindowManager) -> None:
    legend = Xml.SubElement(svg, "g", {"class": "legend", "fill": "#222", "stroke": "#222"})
    x, y = RIGHT + 30, TOP + 10
    for role in WindowRole:
        _mark(legend, role, (x, y - 4))
        _text(legend, "role", x + 14, y, role.value)
        y += 18
    y += 10
    groups = manager.groups
    for group in groups[:LISTED_GROUPS]:
        colour = COLOURS[group.number % len(COLOURS)]
        _line(legend, "edge", (x - 6, y - 4), (x + 6, y - 4), colour)
        count = len(group)
        _text(legend, "entry", x + 14, y, f"{group.number}: {count} frame{'s' if count > 1 else ''}, cost {group.cost}")
        y += 18
    if len(groups) > LISTED_GROUPS:
        _text(legend, "entry", x + 14, y, f"and {len(groups) - LISTED_GROUPS} more groups")


def _text(parent: Xml.Element, kind: str, x: float, y: float, words: str, anchor: str = "start") -> None:
    place = {"class": kind, "x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor, "stroke": "none"}
    Xml.SubElement(parent, "text", place).text = words


def _line(
    parent: Xml.Element, kind: str, start: tuple[float, float], end: tuple[float, float], colour: str | None = None
) -> None:
    place = {"x1": start[0], "y1": start[1], "x2": end[0], "y2": end[1]}
    line = Xml.SubElement(parent, "line", {"class": kind} | {name: f"{value:.1f}" for name, value in place.items()})
    if colour:
        line.set("stroke", colour)

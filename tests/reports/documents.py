"""Reading a report back: its elements, by Python's own HTML parser."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

from profrun.reports.page import report_html
from profrun.runner.report import trace_content
from profrun.traces.trace import Trace

VOID = {"meta", "link", "br", "input"}


@dataclass
class Node:
    """An element with its text pieces and children in order."""

    tag: str
    attributes: dict[str, str]
    children: list[Node | str] = field(default_factory=list)

    def every(self, tag: str, **attributes: str) -> list[Node]:
        """All elements below of this tag whose attributes have these values (class_ for class)."""
        wanted = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
        found = []
        for child in self.children:
            if isinstance(child, Node):
                if child.tag == tag and all(child.attributes.get(k) == v for k, v in wanted.items()):
                    found.append(child)
                found += child.every(tag, **attributes)
        return found

    @property
    def text(self) -> str:
        """All text below."""
        return "".join(child if isinstance(child, str) else child.text for child in self.children)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {key: value or "" for key, value in attrs})
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Node(tag, {key: value or "" for key, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parse(text: str) -> Node:
    """The document; an element that is closed wrongly or not at all is an error."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert len(reader.open) == 1, f"never closed: {reader.open[-1].tag}"
    return reader.root


def rows_of(document: Node, name: str) -> list[list[str]]:
    """The texts of a table of the page."""
    (found,) = document.every("table", data_table=name)
    return [[cell.text for cell in row.every("td")] for row in found.every("tbody")[0].every("tr")]


def page(trace: Trace, name: str = "t") -> Node:
    """The report of one trace."""
    return parse(report_html(name, [trace_content(trace, name=name)], made_by="a test"))

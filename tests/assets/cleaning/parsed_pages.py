"""The true shape of a page: what resiliparse's parser makes of it, walked in Python."""

from __future__ import annotations

from typing import Any

from resiliparse.parse.html import HTMLTree


def parsed_shape(page: str) -> tuple[int, int]:
    """Return (greatest depth below the body, number of elements below the body)."""
    tree = HTMLTree.parse(page)  # a node is only valid as long as its tree is
    depth = nodes = 0
    waiting: list[tuple[Any, int]] = [] if tree.body is None else [(tree.body, 0)]
    while waiting:
        parent, level = waiting.pop()
        child = parent.first_child
        while child is not None:
            if not child.tag.startswith(("#", "!")):
                nodes += 1
                depth = max(depth, level + 1)
                waiting.append((child, level + 1))
            child = child.next
    return depth, nodes

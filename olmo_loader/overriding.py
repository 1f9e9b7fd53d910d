"""``override`` for Python 3.11, where ``typing`` has none: checked by mypy, nothing at run time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import override
else:

    def override(method: Any) -> Any:
        """Return ``method`` as it is."""
        return method


__all__ = ["override"]

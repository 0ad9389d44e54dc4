"""The boundary of a server: whatever a handler does, its client gets one envelope, recorded before it
is sent. The modules for each SDK stand on this; use `faultwire.mcp`, `faultwire.fastmcp` or
`faultwire.starlette`.
"""

from __future__ import annotations

from .call import OpenCall, current_call
from .core import Answer, Boundary
from .settings import Options

__all__ = ["Answer", "Boundary", "OpenCall", "Options", "current_call"]

"""The page's door on the server: its routes among the others, and the browser that opens on it."""

from __future__ import annotations

import socket
import threading
import time
import webbrowser
from typing import Any
from urllib.parse import quote, urlsplit

from octavo.doors.pool import Pool
from octavo.doors.settings import Settings
from octavo.doors.visitors import Visitors
from octavo.doors.web.pages import pages

_TRIES, _PAUSE_SECONDS = 100, 0.1


def add(app: Any, pool: Pool, visitors: Visitors) -> None:
    """Add the pages; who looks at them is who the server takes the request for, within that one's account."""

    def who(request: Any, token: str) -> Settings:
        return visitors.of(request, request.path_params.get("account"), proof=token)

    app.router.routes.extend(pages(pool, who, visitors.same_origin))


def address(account: str, port: int) -> str:
    """Where an account's pages are on this machine."""
    return f"http://127.0.0.1:{port}/@{quote(account, safe='')}/ask"


def show_when_ready(url: str) -> None:
    """Open the browser once the server can be reached; a machine without one is left in peace."""
    parts = urlsplit(url)

    def wait() -> None:
        for _ in range(_TRIES):
            try:
                socket.create_connection((parts.hostname or "", parts.port or 80), timeout=5).close()
            except OSError:
                time.sleep(_PAUSE_SECONDS)
            else:
                webbrowser.open(url)
                return

    threading.Thread(target=wait, name="octavo-open", daemon=True).start()

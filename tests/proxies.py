"""A network in between that loses replies or breaks off, when a test says so."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_CHUNK = 65536


class Proxy:
    """Hands on everything between clients and one server on loopback, until it is told to lose a reply."""

    def __init__(self, port: int) -> None:
        self._server = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()
        self._skip: int | None = None
        self._is_apart = False
        self.lost = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @contextmanager
    def losing(self, *, skip: int = 0) -> Iterator[None]:
        """Lose one reply, after so many that come through: what was asked for is done, and nobody hears."""
        with self._guard:
            self._skip = skip
        try:
            yield
        finally:
            with self._guard:
                self._skip = None

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Cut the network in two: nothing passes, and nobody can connect."""
        self._is_apart = True
        self.cut()
        try:
            yield
        finally:
            self._is_apart = False

    def cut(self) -> None:
        """Break off every connection there is."""
        with self._guard:
            doomed, self._open = self._open, set()
        for one in doomed:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def close(self) -> None:
        """Stop listening, and break off what is left."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # who waits in accept is told only by this
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                if self._is_apart:
                    client.close()
                    continue
                server = socket.create_connection(self._server)
            except OSError:
                return
            with self._guard:
                self._open |= {client, server}
            for source, target, is_reply in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._pump, args=(source, target, is_reply), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, is_reply: bool) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                if is_reply and self._is_lost():
                    break
                target.sendall(data)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        with self._guard:
            self._open -= {source, target}

    def _is_lost(self) -> bool:
        with self._guard:
            if self._skip is None:
                return False
            self._skip -= 1
            if self._skip >= 0:
                return False
            self._skip = None
            self.lost += 1
            return True

"""A real S3 API on this machine's loopback, which counts requests and fails when it is told to."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from zarr.core.sync import sync

from daskcluster.files.objects import ObjectPath

__all__ = ["ObjectStore", "serving"]

_XML = [("Content-Type", "application/xml")]
#: What a server says, as services do -> status and code.
SAID = {
    "slow down": ("503 Slow Down", "SlowDown", "Please reduce your request rate."),
    "denied": ("403 Forbidden", "AccessDenied", "Access Denied"),
    "gone": ("404 Not Found", "NoSuchKey", "The specified key does not exist."),
}


@dataclass
class ObjectStore:
    """The server as tests see it.

    Attributes
    ----------
    port : int
    fault : str, optional
        A key of `SAID`, or "cut": the answer ends in the middle.
    about : callable
        Method, path and query of a request -> whether it fails.
    left : int
        So many requests fail; then no more.
    requests : list
        Methods and paths of all requests since the list was emptied.
    peak : int
        So many were answered at the same time.
    """

    port: int = 0
    fault: str | None = None
    about: Callable[[str, str, str], bool] = lambda method, path, query: method == "GET" and "/c/" in path
    left: int = 0
    requests: list[tuple[str, str]] = field(default_factory=list)
    peak: int = 0
    pause: threading.Event | None = None

    @property
    def options(self) -> dict[str, Any]:
        """Options of s3fs, by which it is reached; few tries, so that failures come at once."""
        config = {"retries": {"max_attempts": 1, "mode": "standard"}, "connect_timeout": 5, "read_timeout": 5}
        return {"endpoint_url": f"http://127.0.0.1:{self.port}", "key": "k", "secret": "s", "config_kwargs": config}

    @contextmanager
    def failing(self, fault: str, left: int = 10**9, about: Any = None) -> Iterator[None]:
        """Answer so many requests like that."""
        before = self.about
        self.fault, self.left, self.about = fault, left, about or before
        try:
            yield
        finally:
            self.fault, self.left, self.about = None, 0, before

    def fails(self, method: str, path: str, query: str) -> bool:
        """Whether the request at hand does."""
        if self.fault is None or self.left <= 0 or not self.about(method, path, query):
            return False
        self.left -= 1
        return True


class _Counting:
    """The server's application, watched."""

    def __init__(self, application: Any, store: ObjectStore) -> None:
        self.application, self.store = application, store
        self.lock, self.at_once = threading.Lock(), 0

    def __call__(self, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        with self.lock:
            self.at_once += 1
            self.store.peak = max(self.store.peak, self.at_once)
            self.store.requests.append((method, path))
            fails = self.store.fails(method, path, environ.get("QUERY_STRING", ""))
        try:
            if not fails:
                return list(self.application(environ, start))
            if self.store.fault == "cut":
                return self._cut(environ, start)
            status, code, text = SAID[str(self.store.fault)]
            start(status, _XML)
            return [f"<Error><Code>{code}</Code><Message>{text}</Message></Error>".encode()]
        finally:
            with self.lock:
                self.at_once -= 1

    def _cut(self, environ: dict[str, Any], start: Any) -> list[bytes]:
        """Half of the answer, whose head promises all of it."""
        head: list[Any] = []
        whole = b"".join(self.application(environ, lambda *given: head.extend(given[:2])))
        start(*head)
        return [whole[: len(whole) // 2]]


@contextmanager
def serving() -> Iterator[ObjectStore]:
    """A server on a free port, with one bucket."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    store = ObjectStore()
    application = _Counting(DomainDispatcherApplication(create_backend_app), store)
    server = make_server("127.0.0.1", 0, application, threaded=True)
    store.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        import dask

        with dask.config.set({"daskcluster.storage-options": store.options}):
            sync(ObjectPath("s3://bucket")._fs._mkdir("bucket"))
        yield store
    finally:
        server.shutdown()
        thread.join()

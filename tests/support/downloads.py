"""A local server of files."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    server: "Server"

    def do_GET(self) -> None:
        state, requested = self.server, self.headers.get("Range")
        data = state.files.get(self.path)
        state.asked.append(requested)
        if data is None:
            self.send_error(404)
            return
        start = int(requested[6:].rstrip("-")) if requested and state.ranges else 0
        if start >= len(data):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        self.wfile.write(data[start:][: state.cut])
        state.cut = None

    def log_message(self, *_: object) -> None:
        return


class Server(ThreadingHTTPServer):
    """Files by path; `cut` breaks the next transfer after so many bytes; `ranges` can be off."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.asked: list[str | None] = []
        self.cut: int | None = None
        self.ranges = True
        self.url = f"http://127.0.0.1:{self.server_port}"


@contextmanager
def serve() -> Iterator[Server]:
    with Server() as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()

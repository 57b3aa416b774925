"""A local server of files, and archives for it."""

import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO


class Server:
    """Files by path; `cut` breaks the next transfer after so many bytes; `ranges` can be off."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str | None] = []
        self.cut: int | None = None
        self.ranges = True
        self.url = ""


@contextmanager
def serve() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            data = state.files.get(self.path)
            requested = self.headers.get("Range")
            state.asked.append(requested)
            if data is None:
                self.send_error(404)
                return
            start = int(requested[6:].rstrip("-")) if requested and state.ranges else 0
            if start >= len(data):
                self.send_error(416)
                return
            body = data[start:]
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body if state.cut is None else body[: state.cut])
            state.cut = None

        def log_message(self, *_: object) -> None:
            return

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{http.server_port}"
    threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield state
    finally:
        http.shutdown()
        http.server_close()


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()

"""A backend that writes down what it receives and answers 200: what stands behind the door in the demo's last check."""

from __future__ import annotations

import http.server
import threading


class Recorder:
    """Use it as a context; `received` holds, for each request, its headers as (lower-case name, value) pairs."""

    def __init__(self) -> None:
        self.received: list[list[tuple[str, str]]] = []
        received = self.received

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                received.append([(name.lower(), value) for name, value in self.headers.items()])
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            do_GET = do_POST = answer

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self) -> Recorder:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

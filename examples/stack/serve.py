"""The answer: an HTTP server that reads the view.

    python examples/stack/serve.py --port 8080
    curl 'http://127.0.0.1:8080/views?page=/cart&page=/pay'    # {"age_s": 0.2, "views": {"/cart": 12, "/pay": 3}}
    curl http://127.0.0.1:8080/views                           # all pages

It has no state, so any number of them can run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from urllib.parse import parse_qs, urlsplit

from page_views import VIEW

from heron.errors import StoreError
from heron_cli.client import open_store
from heron_streamlet.views import ViewReader

_SHOWN = 1000


class ViewHandler(BaseHTTPRequestHandler):
    """Answers ``GET /views``."""

    protocol_version = "HTTP/1.1"
    reader: ViewReader[int]

    def do_GET(self) -> None:
        """The views of the pages that the query names, or of the first 1,000 ones."""
        place = urlsplit(self.path)
        if place.path != "/views":
            return self._answer(404, {"error": f"{place.path}: not found; there is /views"})
        try:
            pages = parse_qs(place.query).get("page") or islice(self.reader.keys(), _SHOWN)
            answer = self.reader.read(pages)
        except StoreError as error:
            return self._answer(503, {"error": str(error)})
        return self._answer(200, {"age_s": answer.age_s, "views": dict(answer.values)})

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as in the base class
        """Nothing: each question would be a line."""

    def _answer(self, status: int, document: object) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main(arguments: Sequence[str]) -> None:
    """Parse the command line, and serve until the process is ended."""
    parser = argparse.ArgumentParser(prog="serve.py", description="answers questions about page views")
    parser.add_argument("--port", type=int, default=8080, help="of the loopback address (default: %(default)s)")
    parser.add_argument("--profile", default="local", help="whose store is read (default: %(default)s)")
    options = parser.parse_args(arguments)
    ViewHandler.reader = ViewReader(VIEW, open_store(options.profile))
    ThreadingHTTPServer(("127.0.0.1", options.port), ViewHandler).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])

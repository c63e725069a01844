#!/usr/bin/python3
"""The service of the documents: it counts its visitors, and shows a page, or any file that it is asked for."""
import http.server
import pathlib

COUNT = pathlib.Path("/var/lib/web/count")


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        count = int(COUNT.read_text()) if COUNT.exists() else 0
        COUNT.write_text(str(count + 1))
        try:
            text = pathlib.Path("/opt/web/page" if self.path == "/" else self.path).read_text()
        except OSError as cause:
            text = f"{cause.strerror}\n"
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())


http.server.ThreadingHTTPServer(("127.0.0.1", 8085), Handler).serve_forever()

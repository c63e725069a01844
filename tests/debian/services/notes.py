"""A service that keeps notes, and does what an attacker would have it do: GET /act/NAME."""
import http.server
import os
import pathlib
import signal
import socket
import subprocess

NOTES = pathlib.Path("/var/lib/notes/notes")
EXAMPLE = "/opt/notes/notes.py"


def connect():
    socket.create_connection(("127.0.0.1", 4444), timeout=5)


def bind():
    socket.socket().bind(("127.0.0.1", 9999))


ACTS = {
    "shell": lambda: subprocess.run(["/bin/sh", "-c", "true"], check=True),
    "program": lambda: subprocess.run(["/usr/bin/id"], check=True),
    "connect": connect,
    "bind": bind,
    "shadow": lambda: open("/etc/shadow").read(),
    "home": lambda: open("/root/secret").read(),
    "database": lambda: os.listdir("/var/lib/postgresql"),
    "cron": lambda: open("/etc/cron.d/notes", "w"),
    "code": lambda: open(EXAMPLE, "a"),
    "programs": lambda: open("/usr/bin/notes", "w"),
    # The kernel does not let any process end its first process, and reports success to those that may try.
    "kill": lambda: os.kill(1, signal.SIGKILL),
    "raw": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
    "name": lambda: socket.sethostname("notes"),
    "policy": lambda: open("/etc/tollgate/policy", "a"),
}


class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, text):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode() + b"\n")

    def do_GET(self):
        name = self.path.rpartition("/")[2]
        if name not in ACTS:
            return self.answer(NOTES.read_text())
        try:
            ACTS[name]()
        except OSError as cause:
            return self.answer(f"{name}: {cause.strerror}")
        except subprocess.CalledProcessError as cause:
            return self.answer(f"{name}: status {cause.returncode}")
        return self.answer(f"{name}: done")

    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with NOTES.open("a") as notes:
            notes.write(text + "\n")
        self.answer("kept")


http.server.ThreadingHTTPServer(("127.0.0.1", 8085), Handler).serve_forever()

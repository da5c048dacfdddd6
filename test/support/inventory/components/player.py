"""A component in Python that uses only the standard library. config.play of the entry says what it does.

Settings come from the environment: COMPONENT, API_URL, API_CA_FILE, CALLBACK_URL, SERVER_ACCOUNT, and REVIEW_TOKEN, the token of
its own for TokenReviews of callers. Prints its port.
"""

import json
import os
import pathlib
import ssl
import sys
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMPONENT = os.environ["COMPONENT"]
API_URL = os.environ["API_URL"]
CALLBACK_URL = os.environ["CALLBACK_URL"]
CA_FILE = os.environ.get("API_CA_FILE")
CA = pathlib.Path(CA_FILE).read_text().strip() if CA_FILE else None
MAX_BYTES = 131072
# Seconds between a 202 and the first heartbeat.
HEARTBEAT_DELAY_SECONDS = float(os.environ.get("HEARTBEAT_DELAY_SECONDS", "0.1"))


def call(method, url, token, body=None, kind="application/json"):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, method=method)
    request.add_header("Authorization", "Bearer " + token)
    request.add_header("Content-Type", kind)
    context = ssl.create_default_context(cafile=CA_FILE) if url.startswith("https:") else None
    with urllib.request.urlopen(request, timeout=10, context=context) as answer:
        return json.load(answer)


def is_server(token):
    audience = "drawbridge/" + COMPONENT
    review = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token, "audiences": [audience]},
    }
    url = API_URL + "/apis/authentication.k8s.io/v1/tokenreviews"
    status = call("POST", url, os.environ["REVIEW_TOKEN"], review).get("status", {})
    user = status.get("user", {}).get("username")
    return (
        status.get("authenticated") is True
        and user == os.environ["SERVER_ACCOUNT"]
        and audience in status.get("audiences", [])
    )


class Run:
    def __init__(self, request):
        self.id = request["run"]["id"]
        self.url = request["entry"]["url"]
        self.token = request["auth"]["token"]
        self.callback = request["callback"]
        self.deleting = request["operation"] == "delete"

    def report(self, body):
        """Repeats the report until it is accepted. This is no retry of the run."""
        for _ in range(30):
            try:
                answer = call("POST", self.callback, self.token, {"run": self.id, **body})
                self.token = answer.get("auth", {}).get("token", self.token)
                return
            except urllib.error.HTTPError as error:
                if error.code != 503:
                    print("report refused:", error.code, error.read().decode(), file=sys.stderr)
                    return
            except urllib.error.URLError:
                pass
            time.sleep(0.2)

    def run_async(self, seen):
        self.report({"heartbeat": {"leaseSeconds": 5}})
        self.report(done(seen))


def done(seen):
    return {"outcome": "Done", "outputs": {COMPONENT: {"seen": seen}}}


def play(run):
    """Returns the status and the body of the answer."""
    if run.deleting:
        return 200, {"outcome": "Deleted"}
    config = call("GET", run.url, run.token)["spec"]["components"][COMPONENT]["config"]
    what, seen = config.get("play"), config.get("value")
    if what == "notReady":
        return 200, {"outcome": "NotReady", "missing": [{"path": "/spec/cluster/region", "want": "present"}]}
    if what == "progressing":
        return 200, {"outcome": "Progressing", "requeueAfterSeconds": 7}
    if what == "retry":
        return 200, {"outcome": "Retry", "message": "try again"}
    if what == "failed":
        return 200, {"outcome": "Failed", "message": "never"}
    if what == "patch":
        patch = {"status": {"outputs": {COMPONENT: {"seen": seen}}}}
        call("PATCH", run.url + "/status", run.token, patch, "application/merge-patch+json")
        return 200, {"outcome": "Done"}
    if what == "goOn":
        threading.Timer(HEARTBEAT_DELAY_SECONDS, run.run_async, [seen]).start()
        return 202, {"leaseSeconds": 5}
    return 200, done(seen)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        if self.path != "/v1/reconcile":
            return self.answer(404, {"code": "NotFound"})
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        try:
            if scheme != "Bearer" or not is_server(token):
                return self.answer(401, {"code": "Unauthorized"})
        except OSError as error:
            return self.answer(503, {"code": "Unavailable", "message": str(error)})
        length = int(self.headers.get("Content-Length", 0))
        if length > MAX_BYTES:
            return self.answer(413, {"code": "BodyTooLarge"})
        try:
            request = json.loads(self.rfile.read(length))
            run = Run(request)
            callback = CALLBACK_URL + "/v1/runs/" + run.id
            entries = API_URL + "/apis/inventory.drawbridge.dev/v1alpha1/namespaces/"
            ca = request["auth"].get("ca")
            ours = (
                run.url.startswith(entries)
                and run.callback == callback
                and (ca if ca is None else ca.strip()) == CA
                and request["component"] == COMPONENT
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            return self.answer(400, {"code": "InvalidRequest"})
        if not ours:
            return self.answer(400, {"code": "ForeignAddress"})
        try:
            status, body = play(run)
        except (OSError, KeyError) as error:
            status, body = 200, {"outcome": "Retry", "message": str(error)}
        self.answer(status, {"run": run.id, **body})

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if status >= 400:
            # The rest of the request is unread.
            self.send_header("Connection", "close")
            self.close_connection = True
        if status == 503:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()

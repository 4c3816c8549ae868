"""The five checks of `make demo`: the whole of Sallyport on this machine, with a real Envoy and the real client.

Each check prints a line, `ok: …` or `FAIL: …`; the exit status is 1 if any failed. Everything happens in a directory of
its own, which is gone afterwards.

    .tools/py/bin/python demo/demo.py [--sallyport bin/sallyport]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator

from polign_recall import Client, RecallError

from recorder import Recorder

READY_WITHIN = 30  # seconds; far more than it takes, for a busy machine
SOCKETS = ("memory", "exchange", "extauthz", "extauthz-admin", "envoy-admin")


class Up:
    """A running `sallyport up`, and the development cluster that belongs to it."""

    def __init__(self, binary: str, data: str, *flags: str):
        self.binary, self.data = binary, data
        self.log = open(os.path.join(data, "up.log"), "ab")
        self.process = subprocess.Popen(
            [binary, "up", "--data", data, "--listen", "127.0.0.1:0", *flags],
            stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL,
        )
        self.url = self._wait_for_env()["RECALL_URL"]

    def _wait_for_env(self) -> dict[str, str]:
        deadline = time.monotonic() + READY_WITHIN
        path = pathlib.Path(self.data, "env")
        while time.monotonic() < deadline and self.process.poll() is None:
            if path.exists():
                return dict(line.split("=", 1) for line in path.read_text().splitlines())
            time.sleep(0.02)
        self.stop()
        raise RuntimeError("`sallyport up` did not get ready:\n" + pathlib.Path(self.log.name).read_text())

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(READY_WITHIN)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()

    def dev(self, *args: str) -> str:
        done = subprocess.run(
            [self.binary, "dev", *args, "--data", self.data, "--namespace", "agents"],
            capture_output=True, text=True, timeout=READY_WITHIN, check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"sallyport dev {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout.strip()

    def token(self, pod: str, **owner: str) -> str:
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in owner.items()]
        return self.dev("token", "--pod", pod, *flags)

    def call(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, dict]:
        """One HTTP call to the gateway; underscores in header names stand for hyphens."""
        data = None if body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=named)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, json.loads(answer.read() or "{}")
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, json.loads(refused.read() or "{}")

    def exchange(self, token: str) -> tuple[int, dict]:
        return self.call("POST", "/v1/auth/kubernetes", {"token": token})

    def key(self, token: str) -> str:
        status, answer = self.exchange(token)
        expect(status == 201, f"the exchange answered {status} {answer}")
        return answer["key"]

    @contextlib.contextmanager
    def client(self, token: str) -> Iterator[Client]:
        """The real client, as an agent in a sandbox makes it: Client.from_env() and a token file."""
        path = pathlib.Path(self.data, "agent.token")
        path.write_text(token)
        os.environ.update(RECALL_URL=self.url, RECALL_TOKEN_FILE=str(path))
        with Client.from_env() as client:
            yield client


class Unexpected(Exception):
    pass


def expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Unexpected(otherwise)


def message(answer: dict) -> str:
    return answer.get("error", {}).get("message", "")


def check_warm_pool(up: Up) -> None:
    token = up.token("warm-1", warm_pool="pool")
    status, answer = up.exchange(token)
    expect(status == 401 and "still in warm pool" in message(answer), f"unclaimed, it got {status} {answer}")
    up.dev("claim", "take", "--claim", "taken", "--pod", "warm-1")
    status, answer = up.exchange(token)
    expect(status == 201 and answer.get("namespace") == "agents:taken", f"claimed, it got {status} {answer}")


def check_remember(up: Up) -> None:
    with up.client(up.token("run-1-a", claim="run-1")) as client:
        client.remember("user", "prefers_editor", "emacs")
        client.remember("user", "prefers_editor", "vim")
        current = [b.value for b in client.recall("user", "prefers_editor")]
        expect(current == ["vim"], f"the current value is {current}")
        events = [e.value for e in client.history("user", "prefers_editor")]
        expect(events == ["emacs", "vim"], f"the history is {events}")
        with client.resume("run-1") as agent:
            agent.update_working_state(goal="write the report", step=3)


def check_memory_outlives_the_claim(up: Up) -> None:
    old = up.token("run-1-a", claim="run-1")
    up.dev("claim", "delete", "--claim", "run-1")
    status, answer = up.exchange(old)
    expect(status == 401, f"with its claim deleted, the pod got {status} {answer}")
    new = up.token("run-1-b", claim="run-1")
    status, answer = up.exchange(new)
    expect(status == 201 and answer.get("namespace") == "agents:run-1", f"the new pod got {status} {answer}")
    with up.client(new) as client:
        current = [b.value for b in client.recall("user", "prefers_editor")]
        expect(current == ["vim"], f"the new pod recalls {current}")
        with client.resume("run-1") as agent:
            state = agent.context.working_state
            expect(state is not None and state.goal == "write the report" and state.step == 3, f"it resumes with {state}")
    status, answer = up.exchange(old)
    expect(status == 401, f"the leftover token got {status} {answer}")


def check_others_are_refused(up: Up) -> None:
    token = up.token("run-2-a", claim="run-2")
    key = up.key(token)
    query = {"subject": "user", "predicate": "prefers_editor", "namespace": "agents:run-1"}
    status, answer = up.call("POST", "/v1/recall", query, Authorization=f"Bearer {key}")
    code = answer.get("error", {}).get("code")
    expect(status == 403 and code == "namespace_mismatch", f"naming agents:run-1 it got {status} {answer}")
    with up.client(token) as client:
        found = client.recall("user", "prefers_editor")
        expect(found == [], f"run-2 recalls {found}")
        try:
            client.resume("run-1")
        except RecallError as refused:
            expect("namespace_mismatch" in str(refused), f"resuming run-1 failed with {refused}")
        else:
            raise Unexpected("run-2 resumed run-1")


def check_only_envoy(up: Up) -> None:
    expect(listeners(up.process.pid) == [], f"sallyport listens on TCP itself: {listeners(up.process.pid)}")
    for name in SOCKETS:
        path = os.path.join(up.data, "run", name + ".sock")
        expect(os.path.exists(path), f"{path} is not there")
        expect(not reachable_by_others(path), f"others can connect to {path}")
    for name in ("keys.db", "memory.db", "admin.key", "dev-issuer.key"):
        mode = os.stat(os.path.join(up.data, name)).st_mode & 0o777
        expect(mode == 0o600, f"{name} has mode {mode:o}")
    status, answer = up.call("POST", "/v1/recall", {"query": "editor"})
    expect(status == 401 and answer["error"]["code"] == "unauthenticated", f"without a key: {status} {answer}")


def check_what_a_backend_receives(binary: str, scratch: str) -> None:
    with Recorder() as backend:
        up = Up(binary, make_dir(scratch, "own-backend"), "--backend", backend.url)
        try:
            key = up.key(up.token("run-3-a", claim="run-3"))
            forged = {"x-sallyport-color": "red", "X-SALLYPORT-ADMIN": "yes", "sallyport-claimed-color": "red"}
            up.call("GET", "/any/path", Authorization=f"Bearer {key}", **forged)
            expect(len(backend.received) == 1, f"the backend received {len(backend.received)} requests")
            seen = backend.received[0]
            trusted = {n: v for n, v in seen if "sallyport" in n}
            want = {"namespace": "agents:run-3", "tenant": "agents", "agent": "run-3", "session": "run-3-a"}
            id_ = trusted.pop("x-sallyport-key-id", "")
            expect(trusted == {f"x-sallyport-{n}": v for n, v in want.items()} and id_ != "", f"the backend received {seen}")
            expect(all(n != "authorization" and key not in v for n, v in seen), f"the backend received the key: {seen}")
            for headers in ({}, {"x-sallyport-namespace": "agents:run-3"}):
                status, answer = up.call("GET", "/any/path", **headers)
                expect(status == 401, f"without a key: {status} {answer}")
            status, answer = up.call("GET", "/any/path", Authorization=f"Bearer {key}", x_sallyport_namespace="agents:run-1")
            expect(status == 403 and answer["error"]["code"] == "namespace_mismatch", f"contradicting its key: {status} {answer}")
            expect(len(backend.received) == 1, "a refused request reached the backend")
        finally:
            up.stop()


def listeners(pid: int) -> list[str]:
    """The TCP sockets that a process listens on (Linux; elsewhere none can be found, and none are reported)."""
    fds = pathlib.Path(f"/proc/{pid}/fd")
    if not fds.exists():
        return []
    inodes = set()
    for fd in fds.iterdir():
        with contextlib.suppress(OSError):
            inodes.add(os.readlink(fd).removeprefix("socket:[").removesuffix("]"))
    found = []
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            listening = "0A"
            if fields[3] == listening and fields[9] in inodes:
                found.append(fields[1])
    return found


def reachable_by_others(path: str) -> bool:
    """Whether another user could connect. As root it is tried; else the modes on the way are looked at."""
    if os.geteuid() != 0:
        return bool(os.stat(path).st_mode & 0o077) and bool(os.stat(os.path.dirname(path)).st_mode & 0o011)
    nobody = 65534
    child = os.fork()
    if child == 0:
        with contextlib.suppress(OSError):
            os.setgid(nobody)
            os.setuid(nobody)
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(path)
                os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0


def make_dir(scratch: str, name: str) -> str:
    path = os.path.join(scratch, name)
    os.mkdir(path)
    return path


def run(says: str, check: Callable[[], None]) -> bool:
    try:
        check()
    except Exception as failure:  # whatever it is, the other checks go on
        print(f"FAIL: {says}: {failure}", flush=True)
        if not isinstance(failure, Unexpected):
            traceback.print_exc()
        return False
    print(f"ok: {says}", flush=True)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description="The five checks of `make demo`.")
    parser.add_argument("--sallyport", default="bin/sallyport", help="the binary (default bin/sallyport)")
    binary = os.path.abspath(parser.parse_args().sallyport)
    scratch = tempfile.mkdtemp(prefix="sallyport-")  # short: the paths of unix sockets are limited
    try:
        up = Up(binary, make_dir(scratch, "up"))

        def door() -> None:
            check_only_envoy(up)
            check_what_a_backend_receives(binary, scratch)

        try:
            results = [
                run("a pod that no claim has taken gets no key; when a claim takes it, it does", lambda: check_warm_pool(up)),
                run("claim run-1 remembers: the second editor is current, the first is history", lambda: check_remember(up)),
                run("run-1 made again has its memory and resumes its work; the old pod's token is worth nothing", lambda: check_memory_outlives_the_claim(up)),
                run("claim run-2 reaches neither run-1's memory nor its agent", lambda: check_others_are_refused(up)),
                run("only Envoy can be reached, nothing passes without a key, forged headers and keys never arrive", door),
            ]
        finally:
            up.stop()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())

"""The download step, against a real web server on loopback."""

import hashlib
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from pathlib import Path

import pytest

from ultrbench.datasets import download as module
from ultrbench.datasets.download import download
from ultrbench.errors import UserError
from ultrbench.stages.data import fetch_dataset

BODY = bytes(range(256)) * 2000
SHA256 = hashlib.sha256(BODY).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Serves BODY, with the fault that the path names."""

    def do_GET(self):
        self.server.ranges.append(self.headers.get("Range"))
        visit = len(self.server.ranges)
        path = self.path
        if path == "/missing":
            self.send_error(404)
        elif path == "/page":
            self.answer(200, b"<!doctype html>", {"Content-Type": "text/html; charset=utf-8"})
        elif path == "/untyped-page":
            self.answer(200, b"\r\n<!doctype html>")
        elif path == "/xhtml":
            self.answer(200, b"page", {"Content-Type": "Application/XHTML+xml"})
        elif path == "/length":
            self.answer(200, BODY, {"Content-Length": "many"})
        elif path == "/nowhere":
            self.answer(302, b"", {"Location": "http://[::1"})
        elif path == "/parts":
            start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
            part = BODY[start : start + 100_000]
            sent = f"bytes {start}-{start + len(part) - 1}/{len(BODY)}"
            self.answer(206, part, {"Content-Range": sent})
        elif path == "/elsewhere":
            self.answer(206, BODY[9:], {"Content-Range": f"bytes 9-{len(BODY) - 1}/{len(BODY)}"})
        elif path == "/circle":
            self.answer(302, b"", {"Location": "/circle"})
        elif path == "/busy" and visit < 3:
            self.answer(503, b"")
        elif path == "/late":
            time.sleep(1)
            self.serve(path, visit)
        elif path == "/silent":
            time.sleep(1.5)
        elif path == "/trickle":
            self.head(200, len(BODY))
            for _ in range(30):
                self.wfile.write(b"x")
                time.sleep(0.05)
        else:
            self.serve(path, visit)

    def serve(self, path, visit):
        start = 0
        if self.headers.get("Range") and "no-resume" not in path:
            start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
        if start >= len(BODY):
            self.answer(416, b"", {"Content-Range": f"bytes */{len(BODY)}"})
            return
        part = BODY[start:]
        sent = {"Content-Range": f"bytes {start}-{len(BODY) - 1}/{len(BODY)}"} if start else {}
        self.head(206 if start else 200, len(part), sent)
        always = path in ("/cut-always", "/cut-no-resume")
        cut = always or (path in ("/cut", "/no-resume") and visit == 1)
        self.wfile.write(part[:100_000] if cut else part)

    def answer(self, status, body, headers=None):
        self.head(status, len(body), headers)
        self.wfile.write(body)

    def head(self, status, length, headers=None):
        self.send_response(status)
        for name, value in {"Content-Length": str(length), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()

    def handle(self):
        with suppress(ConnectionError):
            super().handle()

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(module, "ATTEMPTS", 3)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.ranges = []
        server.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def left_over(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def refusal(*arguments) -> str:
    with pytest.raises(UserError) as raised:
        download(*arguments)
    return str(raised.value)


def test_a_good_file_arrives_alone(server, tmp_path):
    download(f"{server.url}/good", tmp_path / "new" / "a.zip", SHA256)
    assert (tmp_path / "new" / "a.zip").read_bytes() == BODY
    assert left_over(tmp_path / "new") == ["a.zip"]


def test_a_wrong_checksum_is_said_and_the_file_removed(server, tmp_path):
    message = refusal(f"{server.url}/good", tmp_path / "a.zip", "0" * 64)
    assert f"{server.url}/good: the file has another sha256 checksum" in message
    assert "was removed" in message
    assert left_over(tmp_path) == []


def test_a_cut_connection_is_resumed_by_itself(server, tmp_path):
    download(f"{server.url}/cut", tmp_path / "a.zip", SHA256)
    assert server.ranges == [None, "bytes=100000-"]
    assert left_over(tmp_path) == ["a.zip"]


def test_a_later_call_resumes(server, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ATTEMPTS", 1)
    message = refusal(f"{server.url}/cut", tmp_path / "a.zip", SHA256)
    assert "the connection broke off" in message
    assert "100,000 bytes are kept" in message
    [partial] = tmp_path.iterdir()
    assert partial.read_bytes() == BODY[:100_000]
    download(f"{server.url}/cut", tmp_path / "a.zip", SHA256)
    assert server.ranges[1:] == ["bytes=100000-"]
    assert (tmp_path / "a.zip").read_bytes() == BODY


def test_a_whole_partial_file_is_used(server, tmp_path):
    url, target = f"{server.url}/good", tmp_path / "a.zip"
    module._partial(url, target).write_bytes(BODY)
    download(url, target, SHA256)
    assert server.ranges == [f"bytes={len(BODY)}-"]


def test_a_partial_file_that_is_too_long_begins_anew(server, tmp_path):
    url, target = f"{server.url}/good", tmp_path / "a.zip"
    module._partial(url, target).write_bytes(BODY * 2)
    download(url, target, SHA256)
    assert server.ranges[1:] == [None]


def test_a_server_that_cannot_resume_begins_anew(server, tmp_path):
    download(f"{server.url}/no-resume", tmp_path / "a.zip", SHA256)
    assert (tmp_path / "a.zip").read_bytes() == BODY


def test_a_part_that_nobody_asked_for_is_not_the_whole(server, tmp_path):
    download(f"{server.url}/parts", tmp_path / "a.zip")
    assert (tmp_path / "a.zip").read_bytes() == BODY
    message = refusal(f"{server.url}/elsewhere", tmp_path / "b.zip")
    assert "the server cannot resume" in message
    assert left_over(tmp_path) == ["a.zip"]


def test_progress_gives_new_attempts_and_an_end_comes(server, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ATTEMPTS", 2)
    download(f"{server.url}/cut-always", tmp_path / "a.zip", SHA256)
    assert len(server.ranges) == -(-len(BODY) // 100_000)


def test_a_server_that_breaks_off_and_cannot_resume_is_not_asked_for_ever(server, tmp_path):
    message = refusal(f"{server.url}/cut-no-resume", tmp_path / "a.zip", SHA256)
    assert "the connection broke off, after 3 attempts; 100,000 bytes are kept" in message
    assert len(server.ranges) == 3


@pytest.mark.parametrize("url", ["http://[::1", "http://", "mine.zip", "http:///mine.zip"])
def test_an_address_that_is_none_is_refused_at_once(tmp_path, monkeypatch, url):
    monkeypatch.setattr(module.time, "sleep", lambda _: pytest.fail("it waits for another attempt"))
    assert "the address or the server's answer makes no sense" in refusal(url, tmp_path / "a.zip")


def test_a_busy_server_is_asked_again(server, tmp_path):
    download(f"{server.url}/busy", tmp_path / "a.zip", SHA256)
    assert len(server.ranges) == 3


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/missing", "the server answers 404"),
        ("/page", "the server sends a web page (HTML) in place of the file"),
        ("/untyped-page", "the server sends a web page (HTML) in place of the file"),
        ("/xhtml", "the server sends a web page (HTML) in place of the file"),
        ("/length", "the server's answer makes no sense (invalid literal"),
        ("/nowhere", "the server's answer makes no sense"),
        ("/circle", "the server redirects in circles"),
    ],
)
def test_what_no_attempt_mends_is_said_at_once(server, tmp_path, path, sentence):
    message = refusal(f"{server.url}{path}", tmp_path / "a.zip", SHA256)
    assert message.startswith(f"{server.url}{path}: ")
    assert sentence in message
    assert path == "/circle" or len(server.ranges) == 1
    assert left_over(tmp_path) == []


def test_a_silent_server_ends_with_a_sentence(server, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "READ_SECONDS", 0.1)
    message = refusal(f"{server.url}/silent", tmp_path / "a.zip")
    assert "did not answer within 0.1 s, after 3 attempts" in message


def test_a_slow_server_ends_with_a_sentence(server, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "WINDOW_SECONDS", 0.2)
    message = refusal(f"{server.url}/trickle", tmp_path / "a.zip")
    assert "the server is too slow" in message


def test_no_server_ends_with_a_sentence(server, tmp_path):
    message = refusal("http://127.0.0.1:1/a.zip", tmp_path / "a.zip")
    assert "the server cannot be reached, after 3 attempts. Run it again later" in message


def test_what_is_there_is_never_replaced(server, tmp_path):
    (tmp_path / "a.zip").write_text("mine")
    assert "is there already" in refusal(f"{server.url}/good", tmp_path / "a.zip", SHA256)
    entry = {"path": ["a.zip"], "urls": [{"url": f"{server.url}/good", "sha256": SHA256}]}
    assert fetch_dataset(entry, "mine", tmp_path) == tmp_path / "a.zip"
    assert (tmp_path / "a.zip").read_text() == "mine"
    assert server.ranges == []


def test_processes_that_share_a_folder_fetch_a_file_once(server, tmp_path):
    entry = {"path": ["a.zip"], "urls": [{"url": f"{server.url}/late", "sha256": SHA256}]}
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        fetched = list(pool.map(fetch_dataset, [entry] * 3, ["mine"] * 3, [tmp_path / "new"] * 3))
    assert fetched == [tmp_path / "new" / "a.zip"] * 3
    assert fetched[0].read_bytes() == BODY
    assert server.ranges == [None]
    assert left_over(tmp_path / "new") == ["a.zip"]


def test_a_lock_of_a_dead_process_keeps_nobody(server, tmp_path):
    (tmp_path / ".a.zip.lock").touch()
    fetch_dataset({"path": ["a.zip"], "urls": [{"url": f"{server.url}/good"}]}, "mine", tmp_path)
    assert left_over(tmp_path) == ["a.zip"]


def test_the_mirror_is_next(server, tmp_path):
    urls = [{"url": f"{server.url}/missing"}, {"url": f"{server.url}/good", "sha256": SHA256}]
    fetch_dataset({"path": ["a.zip", "b"], "urls": urls}, "mine", tmp_path)
    assert (tmp_path / "a.zip").read_bytes() == BODY


def test_all_failures_and_the_way_out_are_said(server, tmp_path):
    entry = {
        "path": ["a.zip", "b"],
        "urls": [{"url": f"{server.url}/missing"}, {"url": f"{server.url}/page"}],
        "obtain": "Ask at the library.",
    }
    with pytest.raises(UserError) as raised:
        fetch_dataset(entry, "mine", tmp_path)
    lines = str(raised.value).splitlines()
    assert "404" in lines[0]
    assert "web page" in lines[1]
    assert lines[2] == (
        "The data set mine is not there. Ask at the library. "
        f"Put it at {tmp_path / 'a.zip'} or {tmp_path / 'b'}."
    )

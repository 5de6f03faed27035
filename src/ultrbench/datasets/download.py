"""Download of one file: with progress, retry and resume, checked before it is put in place."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

from ultrbench.errors import UserError

ATTEMPTS = 5
CONNECT_SECONDS, READ_SECONDS = 15, 30
# A server that sends less than this in a window has stalled, even if it never times out.
WINDOW_SECONDS, WINDOW_BYTES = 60, 60_000
PAUSE_SECONDS = 1.0


class _BrokenOffError(Exception):
    """A failure that another attempt may mend."""


def download(url: str, target: str | Path, sha256: str | None = None) -> Path:
    """Download `url` to `target`, which must not exist; what is there is never replaced.

    Bytes that have arrived stay in a ``.partial`` file beside `target` when the connection breaks
    off, and the next attempt, or the next call, asks for the rest only.

    Parameters
    ----------
    url : str
        Address, http or https.
    target : path-like
        Where the file goes once it is whole and checked.
    sha256 : str, optional
        Expected checksum; a file with another is removed.

    Returns
    -------
    pathlib.Path
        `target`.

    Raises
    ------
    UserError
        With the address and what is wrong: unreachable, refused, cut short, too slow, redirected
        in circles, a web page in place of the file, or another checksum than expected.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "a.zip"
    >>> _ = target.write_text("put down by the user")
    >>> download("http://localhost/a.zip", target)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ultrbench.errors.UserError: .../a.zip is there already and is not replaced.
    """
    import pooch

    target = Path(target)
    if target.exists():
        raise UserError(f"{target} is there already and is not replaced.")
    pooch.get_logger().setLevel("WARNING")
    try:
        pooch.retrieve(
            url,
            known_hash=f"sha256:{sha256}" if sha256 else None,
            fname=target.name,
            path=target.parent,
            downloader=lambda url, whole, _: _resume(url, Path(whole), _partial(url, target)),
        )
    except ValueError:
        raise UserError(
            f"{url}: the file has another sha256 checksum than the registry expects ({sha256}) and"
            " was removed. The publisher may have replaced it, or it was changed on its way: get"
            f" it by other means and put it at {target}, or correct the registry."
        ) from None
    except OSError as error:
        raise UserError(f"{url} cannot be saved at {target}: {error}.") from None
    return target


def _partial(url: str, target: Path) -> Path:
    # By address, as a mirror may hold another file.
    return target.with_name(f"{target.name}.{crc32(url.encode()):08x}.partial")


def _resume(url: str, whole: Path, partial: Path) -> None:
    """Fetch what `partial` lacks, attempt after attempt, and move it to `whole`."""
    failures, most = 0, _size(partial)
    while True:
        try:
            _attempt(url, partial)
            partial.replace(whole)
            return
        except _BrokenOffError as error:
            # What comes a second time is no progress: from a server that cannot resume.
            failures = 1 if _size(partial) - most >= WINDOW_BYTES else failures + 1
            most = max(most, _size(partial))
            if failures >= ATTEMPTS:
                kept = f"; {_size(partial):,} bytes are kept" if _size(partial) else ""
                raise UserError(
                    f"{url}: {error}, after {ATTEMPTS} attempts{kept}. Run it again later to go on."
                ) from None
            time.sleep(PAUSE_SECONDS * 2 ** (failures - 1))


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _attempt(url: str, partial: Path) -> None:
    """Append to `partial` what the server sends, until the file is whole."""
    import requests
    import urllib3
    from tqdm import tqdm

    start = _size(partial)
    # Without this the bytes may be compressed on the way, and their number means nothing.
    headers = {"Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    try:
        with requests.get(
            url, headers=headers, stream=True, timeout=(CONNECT_SECONDS, READ_SECONDS)
        ) as response:
            sent = response.headers.get("Content-Range", "")
            status, anew = (
                response.status_code,
                "the server cannot resume, the download begins anew",
            )
            if start and status == 416:
                if sent == f"bytes */{start}":
                    return
                partial.unlink()
                raise _BrokenOffError(anew)
            _check_answer(url, response)
            if status != 206:
                start = 0
            elif not sent.startswith(f"bytes {start}-"):
                partial.unlink(missing_ok=True)
                raise _BrokenOffError(anew)
            length = response.headers.get("Content-Length")
            total = start + int(length) if length else None
            whole = sent.partition("/")[2] if status == 206 else ""
            if whole not in ("", "*"):  # of which a part need not reach the end
                total = int(whole)
            with (
                partial.open("ab" if start else "wb") as file,
                tqdm(
                    total=total,
                    initial=start,
                    unit="B",
                    unit_scale=True,
                    desc=partial.name.split(".")[0],
                    disable=None,
                ) as bar,
            ):
                for block in _blocks(response.raw):
                    file.write(block)
                    bar.update(len(block))
    except requests.TooManyRedirects:
        raise UserError(
            f"{url}: the server redirects in circles. Get the file by other means."
        ) from None
    except ValueError as error:  # also what `requests` says of an address that is none
        raise UserError(
            f"{url}: the address or the server's answer makes no sense ({error}). Get the file by"
            " other means or correct the registry."
        ) from None
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        raise _BrokenOffError(_reason(error)) from None
    if total is not None and _size(partial) != total:
        raise _BrokenOffError(f"the connection broke off at {_size(partial):,} of {total:,} bytes")
    with partial.open("rb") as file:
        if file.read(1 << 10).lstrip().startswith(b"<"):  # as no archive does, but every web page
            partial.unlink()
            raise UserError(_page(url))


def _check_answer(url: str, response: Any) -> None:
    """Refuse an answer that is not the file."""
    status = response.status_code
    if status >= 500 or status == 429:
        raise _BrokenOffError(f"the server answers {status} {response.reason}")
    if status not in (200, 206):
        raise UserError(
            f"{url}: the server answers {status} {response.reason}. If the file has moved, get it"
            " by other means or correct the registry."
        )
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind in ("text/html", "application/xhtml+xml"):
        raise UserError(_page(url))


def _page(url: str) -> str:
    return (
        f"{url}: the server sends a web page (HTML) in place of the file. Open the address in a"
        " browser to see what it wants, and put the file down by hand."
    )


def _blocks(raw: Any) -> Iterator[bytes]:
    """Yield bytes as they arrive; stop where they come too slowly."""
    begin, arrived = time.monotonic(), 0
    while block := raw.read1(1 << 16):
        yield block
        arrived += len(block)
        if (now := time.monotonic()) - begin >= WINDOW_SECONDS:
            if arrived < WINDOW_BYTES:
                raise _BrokenOffError(
                    f"the server is too slow ({arrived:,} bytes in {WINDOW_SECONDS} s)"
                )
            begin, arrived = now, 0


def _reason(error: Exception) -> str:
    text = str(error).lower()
    if "timed out" in text:
        return f"the server did not answer within {READ_SECONDS} s"
    if "incomplete" in text or "aborted" in text or "reset" in text:
        return "the connection broke off"
    return "the server cannot be reached"

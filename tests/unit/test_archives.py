"""Archives and folders of any layout, hostile ones included."""

import bz2
import gzip
import io
import tarfile
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from ultrbench.datasets import archives
from ultrbench.datasets.archives import locate_files
from ultrbench.errors import UserError

PLAIN = {"train": "train.txt", "vali": "vali.txt", "test": "test.txt"}
FOLD_2 = {split: f"Fold2/{name}" for split, name in PLAIN.items()}
FILES = {f"Fold{fold}/{name}": f"{fold} {name}" for fold in (1, 2) for name in PLAIN.values()}


def pack(path: Path, files: dict[str, str | bytes]) -> Path:
    """Write an archive of the kind that the name says."""
    contents = {k: v.encode() if isinstance(v, str) else v for k, v in files.items()}
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in contents.items():
                archive.writestr(name, content)
    else:
        with tarfile.open(path, "w:bz2" if path.suffix == ".bz2" else "w:gz") as archive:
            for name, content in contents.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return path


def read(source: Path, patterns: dict[str, str], work: Path) -> dict[str, str]:
    work.mkdir(exist_ok=True)
    return {split: path.read_text() for split, path in locate_files(source, patterns, work).items()}


def refusal(source: Path, patterns: dict[str, str], work: Path) -> str:
    with pytest.raises(UserError) as raised:
        read(source, patterns, work)
    return str(raised.value)


KINDS = ["a.zip", "a.tar.gz", "a.tgz", "a.tar.bz2"]


@pytest.mark.parametrize("name", KINDS)
def test_a_fold_is_found_at_any_depth(tmp_path, name):
    source = pack(tmp_path / name, {f"MSLR/deep/{k}": v for k, v in FILES.items()})
    found = read(source, FOLD_2, tmp_path / "work")
    assert found == {"train": "2 train.txt", "vali": "2 vali.txt", "test": "2 test.txt"}


def test_a_folder_is_read_where_it_is(tmp_path):
    for name, content in FILES.items():
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    files = locate_files(tmp_path / "data", FOLD_2, tmp_path)
    assert files["vali"] == tmp_path / "data" / "Fold2" / "vali.txt"


@pytest.mark.parametrize("inner", ["ltrc_yahoo.tar.bz2", "b.zip"])
@pytest.mark.parametrize("outer", [*KINDS, "folder"])
def test_one_archive_inside_is_looked_into(tmp_path, inner, outer):
    packed = pack(tmp_path / inner, {f"x/{name}": name for name in PLAIN.values()})
    if outer == "folder":
        source = tmp_path / "put-down"
        source.mkdir()
        packed.rename(source / inner)
    else:
        source = pack(tmp_path / f"outer-{outer}", {f"set/{inner}": packed.read_bytes()})
    assert read(source, PLAIN, tmp_path / "work")["test"] == "test.txt"


@pytest.mark.parametrize("name", KINDS)
def test_several_candidates_are_refused(tmp_path, name):
    message = refusal(pack(tmp_path / name, FILES), PLAIN, tmp_path / "work")
    assert "several files match train.txt: Fold1/train.txt, Fold2/train.txt" in message


def test_a_missing_file_is_named_with_what_is_there(tmp_path):
    source = pack(tmp_path / "a.zip", {"train.txt": "", "valid.txt": "", "test.txt": ""})
    message = refusal(source, PLAIN, tmp_path / "work")
    assert "no file matches vali.txt; it holds test.txt, train.txt, valid.txt." in message


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz"])
@pytest.mark.parametrize("path", ["../train.txt", "/tmp/train.txt", "x/../../train.txt"])
def test_paths_that_lead_out_are_refused(tmp_path, name, path):
    source = pack(tmp_path / name, {path: "evil", "vali.txt": "", "test.txt": ""})
    assert "leads out of its folder" in refusal(source, PLAIN, tmp_path / "work")
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_links_in_tar_are_refused(tmp_path, kind):
    source = tmp_path / "a.tar.gz"
    with tarfile.open(source, "w:gz") as archive:
        info = tarfile.TarInfo("train.txt")
        info.type, info.linkname = kind, "/etc/passwd"
        archive.addfile(info)
    assert "is a link or no plain file" in refusal(source, {"train": "train.txt"}, tmp_path / "w")


def test_links_in_zip_are_refused(tmp_path):
    source = tmp_path / "a.zip"
    with zipfile.ZipFile(source, "w") as archive:
        info = zipfile.ZipInfo("train.txt")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    assert "is a link or no plain file" in refusal(source, {"train": "train.txt"}, tmp_path / "w")


def test_an_encrypted_member_is_refused(tmp_path):
    source = pack(tmp_path / "a.zip", {"train.txt": "secret"})
    raw = bytearray(source.read_bytes())
    raw[6] |= 1
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    source.write_bytes(raw)
    assert "train.txt is encrypted" in refusal(source, {"train": "train.txt"}, tmp_path / "w")


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("member", ["train.txt", "other.bin"])
def test_an_absurd_ratio_is_refused(tmp_path, monkeypatch, name, member):
    monkeypatch.setattr(archives, "_FREE_BYTES", 1000)
    files = {member: bytes(20_000_000), "train.txt" if member == "other.bin" else "b": "x"}
    source = pack(tmp_path / name, files)
    if name == "a.zip" and member == "other.bin":
        # A zip is read by its table: what nobody asks for is never unpacked.
        assert read(source, {"train": "train.txt"}, tmp_path / "w") == {"train": "x"}
    else:
        message = refusal(source, {"train": "train.txt"}, tmp_path / "w")
        assert "more than 200 times its size" in message
    assert sum(p.stat().st_size for p in (tmp_path / "w").iterdir()) < 21_000_000


@pytest.mark.parametrize("name", KINDS)
def test_damage_ends_with_a_sentence(tmp_path, name):
    rng = np.random.default_rng(1)
    text = " ".join(map(str, rng.integers(0, 1000, 5000)))
    whole = pack(tmp_path / name, dict.fromkeys(PLAIN.values(), text)).read_bytes()
    source = tmp_path / f"broken-{name}"
    source.write_bytes(whole[: len(whole) // 2])
    assert "cannot be unpacked" in refusal(source, PLAIN, tmp_path / "w")
    source.write_bytes(b"<html>Sign in</html>")
    assert "cannot be unpacked" in refusal(source, PLAIN, tmp_path / "w")
    for _ in range(40):
        damaged = bytearray(whole)
        for position in rng.integers(0, len(whole), 3):
            damaged[position] = rng.integers(256)
        source.write_bytes(damaged)
        try:
            read(source, PLAIN, tmp_path / "w")
        except (UserError, UnicodeDecodeError) as error:
            assert not isinstance(error, UserError) or str(source) in str(error)


@pytest.mark.parametrize("name", KINDS)
def test_a_flipped_bit_is_noticed(tmp_path, name):
    rng = np.random.default_rng(2)
    texts = {file: " ".join(map(str, rng.random(300))) for file in PLAIN.values()}
    whole = pack(tmp_path / name, texts).read_bytes()
    source = tmp_path / f"flipped-{name}"
    for position in rng.integers(0, len(whole), 60):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << rng.integers(8)
        source.write_bytes(damaged)
        try:
            found = read(source, PLAIN, tmp_path / "w")
        except UserError:
            continue
        assert found == {split: texts[file] for split, file in PLAIN.items()}


@pytest.mark.parametrize("mode", ["w", "w:xz"])
def test_a_tar_that_is_not_packed_as_it_says_is_refused(tmp_path, mode):
    with tarfile.open(tmp_path / "a.tar.gz", mode) as archive:
        for file in PLAIN.values():
            archive.addfile(tarfile.TarInfo(file))
    assert "Not a gzipped file" in refusal(tmp_path / "a.tar.gz", PLAIN, tmp_path / "w")


def test_damaged_lzma_in_zip_ends_with_a_sentence(tmp_path):
    source = tmp_path / "a.zip"
    with zipfile.ZipFile(source, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("train.txt", "0 qid:1 1:1\n" * 100)
    damaged = bytearray(source.read_bytes())
    damaged[55] ^= 255
    source.write_bytes(damaged)
    assert "cannot be unpacked" in refusal(source, {"train": "train.txt"}, tmp_path / "w")


def tar_header(size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    info = tarfile.TarInfo("train.txt")
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize(
    ("unpacked", "sentence"),
    [
        # A name of 100 MB, which tarfile would read whole.
        (tar_header(100 << 20, tarfile.GNUTYPE_LONGNAME) + bytes(100 << 20), "a header of"),
        # Back to the member itself, for ever.
        (tar_header(-512), "a member of -512 bytes"),
        # Headers of headers of headers.
        (3000 * (tar_header(1, tarfile.GNUTYPE_LONGNAME) + bytes(512)), "recursion"),
        # All after the end.
        (bytes(1024) + bytes(200 << 20), "more than 200 times its size"),
    ],
)
@pytest.mark.parametrize("suffix", ["gz", "bz2"])
def test_bombs_in_the_headers_of_a_tar_are_refused(
    tmp_path, monkeypatch, unpacked, sentence, suffix
):
    monkeypatch.setattr(archives, "_FREE_BYTES", 1 << 20)
    source = tmp_path / f"a.tar.{suffix}"
    source.write_bytes({"gz": gzip, "bz2": bz2}[suffix].compress(unpacked))
    tracemalloc.start()
    try:
        message = refusal(source, {"train": "train.txt"}, tmp_path / "w")
        assert tracemalloc.get_traced_memory()[1] < 50 << 20
    finally:
        tracemalloc.stop()
    assert sentence in message


def test_an_archive_in_an_archive_unpacks_to_no_more_than_the_outer_allows(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "_FREE_BYTES", 1000)
    inner = pack(tmp_path / "in.zip", dict.fromkeys(PLAIN.values(), bytes(3_000_000)))
    source = pack(tmp_path / "out.zip", {"in.zip": inner.read_bytes() + bytes(20_000)})
    assert source.stat().st_size < inner.stat().st_size
    message = refusal(source, PLAIN, tmp_path / "work")
    assert message.startswith(f"{source}/in.zip: the archive unpacks to more")


@pytest.mark.parametrize("kind", ["a.zip", "a.tar.gz", "folder"])
def test_one_file_for_two_splits_is_refused(tmp_path, kind):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "train.txt").write_text("x")
    source = tmp_path / kind
    if kind != "folder":
        pack(source, {"train.txt": "x"})
    message = refusal(source, {"train": "train.txt", "vali": "t*.txt"}, tmp_path / "w")
    assert "train, vali are to come from train.txt, train.txt; each needs a file" in message


@pytest.mark.parametrize("pattern", ["", "."])
def test_a_pattern_without_a_name_matches_nothing(tmp_path, pattern):
    source = pack(tmp_path / "a.zip", {"train.txt": "x"})
    assert "no file matches" in refusal(source, {"train": pattern}, tmp_path / "w")


def test_other_files_are_refused(tmp_path):
    (tmp_path / "a.rar").write_text("")
    assert "neither a folder nor an archive" in refusal(tmp_path / "a.rar", PLAIN, tmp_path / "w")

"""Archives and folders of any layout, hostile ones included."""

import io
import tarfile
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


def test_other_files_are_refused(tmp_path):
    (tmp_path / "a.rar").write_text("")
    assert "neither a folder nor an archive" in refusal(tmp_path / "a.rar", PLAIN, tmp_path / "w")

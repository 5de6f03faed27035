"""Tables of propensities that somebody else made, and how they go wrong."""

import gzip

import numpy as np
import pytest

from ultrbench.errors import UserError
from ultrbench.propensity.own import read_own_propensity

GOOD = "position,theta\n1,0.8\n2,.6\n3,.4\n"


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        "\ufeff" + GOOD,
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("\n", "\r"),
        GOOD.replace(",", " , "),
        GOOD.replace("\n", "\n\n"),
        GOOD.replace("\n", ",9\n"),
        "position,theta,relative\n1,9,1\n2,9,.75\n3,9,.5\n",
        "position,theta,relative\n1,.8,\n2,.6,\n3,.4,\n",
        'position,theta\n1,"0.8"\n2,.6\n3,.4',
    ],
)
def test_tables_of_every_editor_are_read(tmp_path, content):
    path = tmp_path / "ünï name\n.csv"
    path.write_bytes(content.encode())
    np.testing.assert_allclose(read_own_propensity(path, 3), [1, 0.75, 0.5])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "columns"),
        ("position,theta\n", "columns"),
        ("position,relative,theta\n1,,\n2,,\n3,,\n", "number in the columns relative, theta"),
        ("x" * 10**6, "field larger"),
        ("x," * 10**5, "columns x, x"),
        (GOOD.replace(",", ";"), "columns position;theta"),
        (GOOD.replace(".", ","), "in some lines alone"),
        (GOOD.replace("2,.6", "2,.6,.6"), "in some lines alone"),
        (GOOD.replace("2,.6", '2,".6'), "unexpected end"),
        ("# mine\n" + GOOD, "in some lines alone"),
        ("position,theta,theta\n1,1,1\n2,.9,.1\n3,.4,.4\n", "once each"),
        ("position,position,theta\n1,1,1\n2,2,.1\n3,3,.4\n", "once each"),
        (GOOD.replace("position", "Position"), "columns Position, theta"),
        (GOOD.replace(".6", "0_6"), "'0_6'"),
        (GOOD.replace(".6", "60%"), "'60%'"),
        (GOOD.replace(".6", "0x6"), "'0x6'"),
        (GOOD.replace(".6", "True"), "'True'"),
        (GOOD.replace(".6", "nan"), "theta at position 2 is nan"),
        (GOOD.replace(".6", ""), "theta at position 2 is nan"),
        (GOOD.replace(".6", "0"), "theta at position 2 is 0.0"),
        (GOOD.replace(".6", "-.6"), "theta at position 2 is -0.6"),
        (GOOD.replace(".6", "1e999"), "theta at position 2 is inf"),
        (GOOD.replace(".6", "1e-400"), "theta at position 2 is 0.0"),
        (GOOD.replace("2,.6\n", ""), "in this order"),
        (GOOD.replace("2,.6\n", "2,.6\n2,.6\n"), "in this order"),
        (GOOD.replace("1,0.8\n2,.6", "2,.6\n1,0.8"), "in this order"),
        (GOOD + "4,.2\n", "it has 4 positions, and the click log shows 3"),
        (GOOD.encode("utf-16"), "decode"),
        (GOOD.encode() + b"\0", "in some lines alone"),
        (b"\x89PNG\r\n\x1a\n", "decode"),
        (gzip.compress(GOOD.encode(), mtime=0), "decode"),
    ],
)
@pytest.mark.parametrize("name", ["mine.csv", "mine.csv.gz"])
def test_other_files_are_refused_by_name(tmp_path, content, words, name):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError, match=words) as refused:
        read_own_propensity(path, 3)
    assert str(path) in str(refused.value)
    assert len(str(refused.value)) < 400 + len(str(path))

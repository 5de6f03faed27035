"""Commands whose reader, such as head, has gone."""

import os
import subprocess
import sys

import pytest

CODE = "from ultrbench.terminal import leave; leave(lambda: print('text') or {status})"


@pytest.mark.parametrize(("gone", "status"), [(True, 0), (False, 2)])
def test_a_reader_that_has_gone_is_no_error(gone, status):
    reader, writer = os.pipe()
    if gone:
        os.close(reader)
    command = [sys.executable, "-c", CODE.format(status=status)]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (status, b"")

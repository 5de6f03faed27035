"""Commands whose reader, such as head, has gone, and terminals without the letters of a name."""

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


@pytest.mark.parametrize("encoding", ["ascii", "utf-8:strict"])
def test_a_terminal_without_the_letters_of_a_name_shows_codes(encoding):
    code = "from ultrbench.terminal import leave; leave(lambda: print('wrote \\udcfe') or 0)"
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, b"wrote \\udcfe")


def test_an_interrupt_ends_a_command_with_a_word():
    code = "from ultrbench.terminal import leave\ndef main(): raise KeyboardInterrupt\nleave(main)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (130, b"ultrbench: interrupted\n")

"""Both programs complete their commands and options in bash, zsh and fish, as these ask."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer._completion_shared import get_completion_script

ROOT = Path(__file__).resolve().parents[2]
#: How a script asks each shell for what it would offer after a line.
ASK = {
    "bash": (
        "{script}\nCOMP_WORDS=({line}); COMP_CWORD={last}; COMP_LINE='{line}'\n"
        '_{program}_completion {program}; printf "%s\\n" "${{COMPREPLY[@]}}"'
    ),
    "zsh": (
        "compdef() {{ }}; _arguments() {{ print -l -- $@ }}; _files() {{ }}\n"
        "{script}\nwords=({line}); CURRENT={count}\n_{program}_completion"
    ),
    "fish": "{script}\ncomplete -C '{line}'",
}


@pytest.mark.parametrize("shell", ASK)
@pytest.mark.parametrize(
    ("line", "offered", "not_offered"),
    [
        ("daskdl s", {"show", "stream"}, {"doctor"}),
        ("daskdl stream --ex", {"--exactly-once"}, {"--echo"}),
        ("nowcast tr", {"train"}, {"verify"}),
    ],
)
def test_a_shell_completes(shell, line, offered, not_offered, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    program, words = line.split()[0], line.split()
    wrapper = tmp_path / program
    code = f"import sys; from {program}.cli import main; sys.exit(main())"
    wrapper.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c "{code}" "$@"\n')
    wrapper.chmod(0o755)
    script = get_completion_script(
        prog_name=program, complete_var=f"_{program.upper()}_COMPLETE", shell=shell
    )
    asked = ASK[shell].format(
        script=script, line=line, program=program, last=len(words) - 1, count=len(words)
    )
    run = subprocess.run(
        [shell, "-c", asked],
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=120,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    for word in offered:
        assert word in run.stdout, run.stderr
    for word in not_offered:
        assert word not in run.stdout


@pytest.mark.parametrize("program", ["daskdl", "nowcast"])
def test_help_says_how_to_install_it(program):
    code = f"import sys; from {program}.cli import main; sys.exit(main())"
    run = subprocess.run(
        [sys.executable, "-c", code, "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "--install-completion" in run.stdout

"""Boards in git repositories, apart from the settings of this machine."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from support.cli import CommandLine

PERSON = {
    f"GIT_{who}_{what}": "x@example.org"
    for who in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}
GIT = PERSON | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
"""Variables of the environment."""


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    environment = {"PATH": os.environ["PATH"], **GIT}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return done.stdout


def start(folder: Path) -> None:
    """Make a repository whose branch `main` has the files of a folder."""
    git(folder, "init", "-q", "-b", "main", "--template=")
    commit(folder)


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "change")


def propose(base: Path, folder: Path) -> Path:
    """Return a copy of a repository on the branch of a pull request."""
    shutil.copytree(base, folder)
    git(folder, "switch", "-q", "-c", "proposal")
    return folder


def check(cli: CommandLine, board: Path, *options: str, code: int = 0) -> Any:
    """Commit what a pull request changes, check it, and return what is printed."""
    if (board / ".git").is_dir():
        commit(board)
    return cli("leaderboard", "check", "--board", board, *options, code=code)

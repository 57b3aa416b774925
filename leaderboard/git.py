"""Git as a process that asks nothing and runs no code of a repository."""

import os
import shutil
import subprocess
from pathlib import Path

from fsbench.core.errors import UsageError

SETTINGS = ("core.fsmonitor=false", "core.autocrlf=false", f"core.hooksPath={os.devnull}")
FIX = "give a commit of the board's repository as --base, or a folder as --base-folder"


def run_git(folder: Path, *arguments: str, fix: str = FIX, git_dir: Path | None = None) -> str:
    """Return what a command of git prints in a folder. Raises UsageError with git's message.

    git_dir: the repository of which `folder` is the work tree, if it is not found from there.
    """
    git = shutil.which("git")
    if git is None:
        raise UsageError("there is no git on PATH", fix="install git")
    settings = [text for setting in SETTINGS for text in ("-c", setting)]
    done = subprocess.run(
        [git, "-C", str(folder), *settings, *arguments],
        capture_output=True,
        check=False,
        env={
            **os.environ,
            "GIT_TERMINAL_PROMPT": "0",
            **({"GIT_DIR": str(git_dir)} if git_dir else {}),
        },
    )
    if done.returncode:
        message = done.stderr.decode(errors="replace").strip().splitlines()
        raise UsageError(
            f"git {arguments[0]} fails in {folder}: {message[-1] if message else 'no message'}",
            fix=fix,
        )
    return os.fsdecode(done.stdout)

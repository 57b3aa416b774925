"""Files that turn a board folder into a repository whose entries come by pull request.

The workflow of the base branch reads both states: a pull request can change neither the workflow
nor what it installs, and nothing of the pull request is run.
"""

from __future__ import annotations

from pathlib import Path

from fsbench.core.io import write_atomic

WORKFLOW_FILE = ".github/workflows/check.yml"
WORKFLOW = """\
# Checks every pull request. Set the repository variable FSBENCH to what pip shall install, with a
# commit or a version, e.g. "fsbench @ git+https://HOST/OWNER/fsbench@COMMIT".
name: check
on: pull_request_target
permissions:
  contents: read
jobs:
  check:
    runs-on: ubuntu-latest
    timeout-minutes: 60
    steps:
      - uses: actions/checkout@v4
        with: {path: base, persist-credentials: false}
      - uses: actions/checkout@v4
        with:
          ref: refs/pull/${{ github.event.pull_request.number }}/merge
          path: proposed
          persist-credentials: false
      - uses: actions/setup-python@v5
        with: {python-version: "3.12"}
      - run: pip install "$FSBENCH"
        env: {FSBENCH: "${{ vars.FSBENCH }}"}
      - run: fsbench leaderboard check --board proposed --base base $MAINTAINER
        env:
          MAINTAINER: >-
            ${{ contains(fromJSON('["OWNER", "MEMBER", "COLLABORATOR"]'),
            github.event.pull_request.author_association) && '--allow-maintainer' || '' }}
"""
FILES = {
    WORKFLOW_FILE: WORKFLOW,
    ".gitignore": ".lock\n.staging-*\n",
    ".gitattributes": "* -text\n",
}
"""Entries are compared byte by byte, so git must not convert line ends."""


def write_repository_files(folder: Path) -> None:
    """Write the files of a board repository; those that exist are left unchanged."""
    for name, content in FILES.items():
        path = folder / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, content.encode())

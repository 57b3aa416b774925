"""`fsbench leaderboard build` on a board in a folder; a build that dies leaves the old page."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.cli import CommandLine
from support.site import write_board

from fsbench.core.errors import UsageError
from leaderboard.render import FORMATS
from leaderboard.render.frame import make_frames
from leaderboard.site import page
from leaderboard.tables import EXTRA, rank_board


@pytest.fixture
def board(tmp_path: Path) -> Path:
    return write_board(tmp_path / "board", ["a", "b"], targets=["isic"], shots=[1], n_episodes=5)


def test_the_command_writes_a_page_and_the_files_that_it_links_to(
    board: Path, tmp_path: Path, cli: CommandLine
) -> None:
    written = tmp_path / "site" / "index.html"
    shown = cli("leaderboard", "build", "--board", board, "-o", written.parent).out
    assert shown.strip() == str(written)
    text = written.read_text(encoding="utf8")
    links = re.findall(r'href="(scores\.\w+)"', text)
    assert "</html>" in text
    assert {path.name for path in written.parent.iterdir()} == {"index.html", *links}
    frames = make_frames(rank_board(board))
    contents = [(written.parent / link).read_bytes().decode() for link in links]
    assert contents == [FORMATS.load(name)(frames) for name in ("csv", "json", "latex")]


KILLED = """
import os, signal, sys
from pathlib import Path
from leaderboard.site import page

def half(self, content):
    self.write_text(content[:100].decode())
    if "index" in self.name:
        os.kill(os.getpid(), signal.SIGKILL)

Path.write_bytes = half
page.build_site(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def test_a_build_that_is_killed_leaves_the_old_page_and_the_next_one_ends(
    board: Path, tmp_path: Path
) -> None:
    index = tmp_path / "site" / "index.html"
    index.parent.mkdir()
    index.write_text("old")
    (index.parent / "CNAME").write_text("mine")
    command = [sys.executable, "-c", KILLED, str(board), str(index.parent)]
    killed = subprocess.run(command, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert index.read_text() == "old"
    assert page.build_site(board, index.parent).read_text(encoding="utf8").endswith("</html>")
    assert (index.parent / "CNAME").read_text() == "mine"


def test_a_missing_board_and_a_file_as_site_are_refused(board: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no board"):
        page.build_site(tmp_path / "nothing", tmp_path / "site")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        page.build_site(board, tmp_path / "file")


def test_a_table_in_which_nobody_is_ranked_says_why(tmp_path: Path) -> None:
    folder = tmp_path / "board"
    for name, target in (("a", "isic"), ("b", "eurosat")):
        write_board(folder, [name], targets=[target], shots=[1], n_episodes=5)
    text = page.build_site(folder, tmp_path / "site").read_text(encoding="utf8")
    assert f"<td>–</td>\n      <td>b ({EXTRA})</td>" in text
    assert "No row is ranked." in text

"""How long commands take to answer: `python -m benchmarks.start`; least seconds of several rounds.

Every command is started in a process of its own, on a terminal, and killed after its first line.
Floors and the two commands with a bound on the whole answer come first.
"""

import os
import pty
import select
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.pairing import make_parser, seconds

ROOT = Path(__file__).resolve().parents[2]
BOARD = f"--board {ROOT / 'leaderboard/studies/pilot/entries'}"
TOY = "-m fsbench/toy_resnet --random-init 0 -t toy_tiles:5w1s --limit 5"
WHOLE = {
    "-c pass": None,
    "-c 'import typer'": None,
    "-m fsbench --help": 0.2,
    "-m fsbench leaderboard show --help": None,
    f"-m fsbench leaderboard show {BOARD}": 0.7,
}
"""Arguments of Python, and the bound in seconds on the time to the end."""
FIRST_LINE = 0.5
"""Bound in seconds on the time to the first line."""
COMMANDS = (
    *("--version", "ls", "ls methods", "ls recipes", "ls models resnet18", "ls nothing", "nothing"),
    *(f"show {ROOT / 'leaderboard/studies/pilot/entries/pilot-normal-s0'}",),
    *("report nothing", "results merge nothing -o merged", "protocols diff linear@ibm affine@ibm"),
    *("episodes hash toy_tiles:5w1s", "episodes export toy_tiles:5w1s -o episodes.jsonl"),
    *(f"episodic {TOY}", f"episodic {TOY} --json", f"benchmark {TOY}", f"probe {TOY}"),
    *("analyze -m run:nothing", "pretrain toy/seal"),
    *("sweep nothing.yaml", f"sweep --dry-run {ROOT / 'README.md'}"),
    *("claims", "claims swr_decay", "submit nothing", "export nothing", "demo"),
    *("compare a b " + BOARD, "power --like nothing", "data ls", "data verify toy_tiles"),
    *("data audit toy_tiles", "data download eurosat", "cache ls", "cache clear nothing"),
    *("doctor", "leaderboard boards", "leaderboard init --board board"),
    *(f"leaderboard {name} {BOARD}" for name in ("show", "check", "methods", "stats")),
    *(f"leaderboard {name} {BOARD}" for name in ("recompute nothing", "build -o site")),
    *(f"leaderboard {name} --board nothing" for name in ("readme", "freeze", "verify x -m y")),
)


def finish(arguments: str, folder: Path) -> None:
    """Run Python with these arguments to its end."""
    command = [sys.executable, *shlex.split(arguments)]
    subprocess.run(command, cwd=folder, capture_output=True, check=True)


def print_line(arguments: str, folder: Path) -> None:
    """Run a command of fsbench until it prints a line, on either stream."""
    reading, writing = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "fsbench", *shlex.split(arguments)],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=writing,
        stderr=writing,
        start_new_session=True,
    )
    os.close(writing)
    printed = b""
    while b"\n" not in printed and select.select([reading], [], [], 60)[0]:
        printed += os.read(reading, 4096)  # fails where the command ended without a line
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    os.close(reading)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = range(parser.parse_args().rounds)
    with TemporaryDirectory() as name:
        folder = Path(name)
        paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        os.environ |= {"FSBENCH_CACHE": str(folder / "cache"), "PYTHONPATH": paths}
        works = [("python", finish, text, bound) for text, bound in WHOLE.items()]
        works += [("fsbench", print_line, text, FIRST_LINE) for text in COMMANDS]
        for program, run, text, bound in works:
            least = min(seconds(lambda: run(text, folder)) for _ in rounds)  # noqa: B023
            verdict = "" if bound is None else f"<= {bound:g}: {'yes' if least <= bound else 'NO'}"
            print(f"{least:6.3f}  {program} {text}  {verdict}", flush=True)


if __name__ == "__main__":
    main()

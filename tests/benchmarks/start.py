"""How long commands take to answer: `python -m benchmarks.start`; least seconds of several rounds.

Every command is started in a process of its own, once with a pipe and once with a terminal, and
killed after its first line. Floors and the two commands with a bound on the whole answer come
first, with the processor time of their processes beside the clock.
"""

import os
import pty
import resource
import select
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.pairing import make_parser

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
"""Arguments of Python, and the bound in seconds on the time to the end; the cache is filled."""
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


def time_whole(arguments: str, folder: Path) -> tuple[float, float]:
    """Return the seconds of the clock and of the processor until a process has ended."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, *shlex.split(arguments)]
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    clock, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def time_first_line(arguments: str, folder: Path, terminal: bool) -> float:
    """Return the seconds until a command prints a line, on either stream."""
    reading, writing = pty.openpty() if terminal else os.pipe()
    start = time.perf_counter()
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
        block = os.read(reading, 4096)
        if not block:
            break
        printed += block
    seconds = time.perf_counter() - start
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    os.close(reading)
    if not printed:
        raise SystemExit(f"fsbench {arguments} printed nothing")
    return seconds


def judge(seconds: float, bound: float | None) -> str:
    return "" if bound is None else f"<= {bound:g}: {'yes' if seconds <= bound else 'NO'}"


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = range(parser.parse_args().rounds)
    with TemporaryDirectory(prefix="fsbench-") as name:
        folder = Path(name)
        paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        os.environ |= {"FSBENCH_CACHE": str(folder / "cache"), "PYTHONPATH": paths}
        for arguments in WHOLE:
            time_whole(arguments, folder)
        print(f"{'clock':>6} {'cpu':>6}  whole command")
        for arguments, bound in WHOLE.items():
            clock, busy = map(
                min, zip(*(time_whole(arguments, folder) for _ in rounds), strict=True)
            )
            print(
                f"{clock:6.3f} {busy:6.3f}  python {arguments}  {judge(clock, bound)}", flush=True
            )
        print(f"{'pipe':>6} {'tty':>6}  first line")
        for arguments in COMMANDS:
            pipe, tty = (
                min(time_first_line(arguments, folder, terminal) for _ in rounds)
                for terminal in (False, True)
            )
            verdict = judge(max(pipe, tty), FIRST_LINE)
            print(f"{pipe:6.3f} {tty:6.3f}  fsbench {arguments}  {verdict}", flush=True)


if __name__ == "__main__":
    main()

"""How long commands take to answer: `python -m benchmarks.start`; least seconds of several rounds.

Every command is started in a process of its own, on a terminal, and killed after its first line.
Floors and the two commands with a bound on the whole answer come first.
"""

import os
import pty
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.pairing import make_parser, seconds
from click import Command
from typer.main import get_command

from fsbench.cli.main import build

ROOT = Path(__file__).resolve().parents[2]
WHOLE = {
    "-c pass": None,
    "-c 'import typer'": None,
    "-m fsbench --help": 0.2,
    "-m fsbench leaderboard show --help": None,
    f"-m fsbench leaderboard show --board {ROOT / 'leaderboard/studies/pilot/entries'}": 0.7,
}
"""Arguments of Python, and the bound in seconds on the time to the end."""
FIRST_LINE = 0.5
"""Bound in seconds on the time to the first line."""


def list_commands(command: Command, name: str = "-m fsbench") -> Iterator[str]:
    """Yield every command, with a word for each argument that it needs."""
    for inside, part in getattr(command, "commands", {}).items():
        yield from list_commands(part, f"{name} {inside}")
    if not hasattr(command, "commands"):
        needed = [p for p in command.params if p.param_type_name == "argument" and p.required]
        yield name + " nothing" * len(needed)


def finish(arguments: str, folder: Path) -> None:
    """Run Python with these arguments to its end."""
    command = [sys.executable, *shlex.split(arguments)]
    subprocess.run(command, cwd=folder, capture_output=True, check=True)


def print_line(arguments: str, folder: Path) -> None:
    """Run Python with these arguments until it prints a line, on either stream."""
    reading, writing = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, *shlex.split(arguments)],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=writing,
        stderr=writing,
        start_new_session=True,
    )
    os.close(writing)
    while b"\n" not in os.read(reading, 4096):  # fails where the command ends without a line
        pass
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    os.close(reading)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = range(parser.parse_args().rounds)
    works: list[tuple[Callable[[str, Path], None], str, float | None]]
    works = [(finish, arguments, bound) for arguments, bound in WHOLE.items()]
    works += [(print_line, text, FIRST_LINE) for text in list_commands(get_command(build()))]
    with TemporaryDirectory() as name:
        folder = Path(name)
        paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        os.environ |= {"FSBENCH_CACHE": str(folder / "cache"), "PYTHONPATH": paths}
        for run, arguments, bound in works:
            least = min(seconds(lambda: run(arguments, folder)) for _ in rounds)  # noqa: B023
            verdict = "" if bound is None else f"<= {bound:g}: {'yes' if least <= bound else 'NO'}"
            print(f"{least:6.3f}  {run.__name__} python {arguments}  {verdict}", flush=True)


if __name__ == "__main__":
    main()

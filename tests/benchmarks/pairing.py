"""Paired timing: sides of a comparison in turns, an A/A ratio beside, verdicts on quiet machines.

A side is a function that does its work and returns seconds per unit of it (`timer`). A round times
ours twice and the plain one between; the second time of ours over its first (A/A) is noise. A ratio
is the median over fresh processes of the median of their rounds: where memory comes to lie differs
between processes, and a machine's pace from second to second.
"""

import os
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from statistics import median
from typing import Any, NamedTuple

import numpy as np

Side = Callable[[], float]
STEADY = (0.9, 1.1)
"""Range of A/A ratios of a machine that is quiet enough for a verdict."""
MOST_LOAD = 1.0
"""Load average of a quiet machine before the work starts."""
MEBIBYTE = 2**20


class Settings(NamedTuple):
    """data: folder with EuroSAT; threads: of torch; quick: one round, to try the script."""

    data: str
    threads: int
    quick: bool = False
    device: str = "cpu"


def make_parser(doc: str | None) -> ArgumentParser:
    """Return a parser that is described by the first line of the docstring of a benchmark."""
    return ArgumentParser(description=(doc or "").partition("\n")[0])


def seconds(work: Callable[[], object]) -> float:
    """Return how long the work takes, on a GPU until it has ended there."""
    started = time.perf_counter()
    work()
    wait_for_gpu()
    return time.perf_counter() - started


def wait_for_gpu() -> None:
    """Wait until a GPU has done all that this process gave it, if it uses one."""
    torch = sys.modules.get("torch")  # boards are measured without the memory that it takes
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def processor_seconds() -> float:
    """Return the processor time of this process, and of those it started that have ended."""
    return sum(os.times()[:4])


def fastest_seconds(work: Callable[[], object]) -> float:
    """Return how long the work takes with one torch thread or with all, whichever is faster."""
    import torch  # not above: see wait_for_gpu

    threads, times = torch.get_num_threads(), []
    for n in {1, threads}:
        torch.set_num_threads(n)
        times.append(seconds(work))
    torch.set_num_threads(threads)
    return min(times)


def timer(work: Callable[[], object], units: float = 1) -> Side:
    """Return a side that does the work and returns its seconds per unit."""
    return lambda: seconds(work) / units


class Round(NamedTuple):
    """Seconds per unit of the plain side, of ours (mean of both times), and their A/A ratio."""

    plain: float
    ours: float
    noise: float

    @property
    def ratio(self) -> float:
        """How many times faster ours is than the plain side."""
        return self.plain / self.ours


def take_paired_rounds(plain: Side, ours: Side, rounds: int, at_least: float = 0.0) -> list[Round]:
    """Warm both sides, then time rounds: so many, and for so many seconds.

    The order is ours, plain, ours: a steady drift of the machine's pace leaves the ratio alone.
    """
    ours()
    plain()
    taken: list[Round] = []
    started = time.perf_counter()
    while len(taken) < rounds or time.perf_counter() - started < at_least:
        first, between, second = ours(), plain(), ours()
        taken.append(Round(between, (first + second) / 2, second / first))
    return taken


def in_fresh_processes(
    take: Callable[..., Any], arguments: Sequence[Any], processes: int
) -> list[Any]:
    """Return take(*arguments) of so many new processes, one after the other."""
    outcomes = []
    for _ in range(processes):  # a Pool's processes could not start the workers of a DataLoader
        with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
            outcomes.append(fresh.submit(take, *arguments).result())
    return outcomes


class Measurement(NamedTuple):
    """The rounds of one comparison, by process."""

    processes: Sequence[Sequence[Round]]

    def values(self, field: str) -> list[float]:
        """Return the median of a field over its rounds for every process, sorted."""
        return sorted(median(getattr(one, field) for one in rounds) for rounds in self.processes)

    def median(self, field: str) -> float:
        return median(self.values(field))

    @property
    def is_steady(self) -> bool:
        """Whether the A/A ratio allows a verdict: nothing else ran."""
        return STEADY[0] <= self.median("noise") <= STEADY[1]

    def judge(self, bound: float | None) -> str:
        """Return whether the ratio reaches the bound, '' without one."""
        if not self.is_steady:
            return "no verdict"
        if bound is None:
            return ""
        return "holds" if self.median("ratio") >= bound else "missed"


def require_quiet() -> None:
    """End the program if others keep this machine busy."""
    load = os.getloadavg()[0]
    if load > MOST_LOAD:
        sys.exit(
            f"no verdict: the load average is {load:.1f}, allowed is {MOST_LOAD:.0f}; stop other "
            "programs, wait a minute and start again"
        )


def fit_exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Return k of values ~ sizes^k: the slope of a straight line through their logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


class Use(NamedTuple):
    """Processor seconds, and bytes of memory at the peak, or by which the peak grew."""

    seconds: float
    memory: float


def use_of(work: Callable[[], object]) -> Use:
    """Return what the work takes in this process, and in those that it starts."""
    from fsbench.core.process import peak_memory  # not above: see wait_for_gpu

    peak, started = peak_memory(), processor_seconds()
    work()
    return Use(processor_seconds() - started, max(peak_memory() - peak, MEBIBYTE))


def make_growth_row(work: str, sizes: Sequence[int], uses: Sequence[Use]) -> dict[str, str]:
    """Return a row of a table of growth: the ends of the range and the exponents of two sizes on.

    `last` is the exponent between the two largest sizes, where a fixed part hides nothing.
    """
    row = {
        "work": work,
        "sizes": f"{sizes[0]:,} to {sizes[-1]:,}",
        "largest": f"{uses[-1].seconds:.1f} s, {uses[-1].memory / MEBIBYTE:.0f} MiB",
    }
    for what, values in zip(("time", "memory"), zip(*uses, strict=True), strict=True):
        if len(sizes) > 1:
            last = fit_exponent(sizes[-2:], values[-2:])
            row[f"exponent of {what}"] = f"{fit_exponent(sizes, values):.2f} (last {last:.2f})"
    return row

"""Pieces side by side: workers that are kept, failures, forks."""

import sys
import threading
import time
from multiprocessing import get_context

import pytest
import torch

from protocols.heads.execution import run_side_by_side, start_threads


@pytest.fixture(autouse=True)
def two_threads() -> None:
    torch.set_num_threads(2)


def test_outcomes_keep_their_order_and_workers_serve_again() -> None:
    def work(piece: int) -> tuple[int, int]:
        time.sleep(0.02 * (piece == 0))
        return piece, threading.get_ident()

    calls = [run_side_by_side(work, range(6), "cpu") for _ in range(3)]
    assert all([piece for piece, _ in call] == list(range(6)) for call in calls)
    workers = {worker for call in calls for _, worker in call}
    assert 1 <= len(workers) <= 2
    assert threading.get_ident() not in workers


def test_a_worker_has_one_thread() -> None:
    def count(_: int) -> int:
        return torch.get_num_threads()

    assert run_side_by_side(count, range(4), "cpu") == [1] * 4
    assert torch.get_num_threads() == 2


def test_a_failure_arrives_when_no_piece_runs_any_more() -> None:
    running: list[int] = []

    def work(piece: int) -> None:
        if piece == 0:
            raise ValueError("first")
        running.append(piece)
        time.sleep(0.05)
        running.remove(piece)

    with pytest.raises(ValueError, match="first"):
        run_side_by_side(work, range(5), "cpu")
    assert running == []


@pytest.mark.skipif(sys.platform != "linux", reason="forks a process")
def test_a_fork_starts_workers_of_its_own() -> None:
    run_side_by_side(abs, range(4), "cpu")
    assert start_threads.cache_info().currsize
    fork = get_context("fork").Process(target=run_side_by_side, args=(abs, range(4), "cpu"))
    fork.start()
    fork.join(20)
    alive = fork.is_alive()
    fork.kill()
    assert (alive, fork.exitcode) == (False, 0), "it waits for threads that it does not have"

"""What a signal does, seen from inside: at once, or when a loop has written its checkpoint."""

import os
import signal
from collections.abc import Iterator
from threading import Thread

import pytest

from fsbench.core.process import Stopped, hold_signals, raise_on_signals


@pytest.fixture(autouse=True)
def _heard() -> Iterator[None]:
    """A shell lets what it starts in the background ignore SIGINT; these tests need it heard."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def send(number: int) -> None:
    os.kill(os.getpid(), number)
    for _ in range(1000):  # the handler runs between two instructions
        pass


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_stops_at_once_and_the_old_handler_comes_back(number: int, code: int) -> None:
    before = signal.getsignal(number)
    with pytest.raises(Stopped, match="the same command goes on") as stopped, raise_on_signals():
        send(number)
    assert stopped.value.exit_code == code
    assert signal.getsignal(number) is before


def test_a_postponed_signal_waits_for_the_end_and_a_second_does_not() -> None:
    reached: list[int] = []

    def work() -> None:
        with raise_on_signals():
            with hold_signals() as request:
                assert not request.number
                send(signal.SIGTERM)
                reached.append(request.number)
                with pytest.raises(Stopped, match="SIGINT"):
                    send(signal.SIGINT)
            reached.append(-1)  # behind the block: never

    with pytest.raises(Stopped, match="SIGTERM"):
        work()
    assert reached == [signal.SIGTERM]


def test_an_ignored_signal_stays_ignored_and_other_callers_keep_their_handlers() -> None:
    """nohup ignores signals; a library user has handlers of its own."""
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with raise_on_signals(), hold_signals() as request:
            send(signal.SIGTERM)
        assert not request.number
    finally:
        signal.signal(signal.SIGTERM, before)
    with hold_signals():
        assert signal.getsignal(signal.SIGTERM) is before


def test_other_threads_are_left_alone() -> None:
    done = []

    def work() -> None:
        with raise_on_signals(), hold_signals() as request:
            done.append(not request.number)

    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]

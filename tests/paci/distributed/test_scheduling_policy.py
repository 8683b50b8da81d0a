import errno
import os
from threading import Thread

import pytest

from paci.distributed.scheduling_policy import batch_scheduling


def policy_of_a_new_thread() -> int:
    policies = []
    thread = Thread(target=lambda: policies.append(os.sched_getscheduler(0)))
    thread.start()
    thread.join()
    return policies.pop()


def test_holds_for_this_thread_inside_and_for_those_it_starts():
    with batch_scheduling():
        assert os.sched_getscheduler(0) == policy_of_a_new_thread() == os.SCHED_BATCH
    assert os.sched_getscheduler(0) == policy_of_a_new_thread() == os.SCHED_OTHER


def test_ends_with_an_error():
    with pytest.raises(ArithmeticError), batch_scheduling():
        raise ArithmeticError
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


@pytest.mark.parametrize("when", ["before", "inside"])
def test_leaves_a_chosen_policy_alone(when):
    seen = []

    def choose() -> None:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))

    def one_that_chooses() -> None:
        if when == "before":
            choose()
        with batch_scheduling():
            if when == "inside":
                choose()
            seen.append(os.sched_getscheduler(0))
        seen.append(os.sched_getscheduler(0))

    thread = Thread(target=one_that_chooses)
    thread.start()
    thread.join()
    assert seen == [os.SCHED_IDLE, os.SCHED_IDLE]


@pytest.mark.parametrize("number", [errno.EPERM, errno.EINVAL, errno.ENOSYS])
def test_does_without_where_no_policy_may_be_chosen(number, monkeypatch):
    def refuse(*_) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    with batch_scheduling():
        assert os.sched_getscheduler(0) == os.SCHED_OTHER

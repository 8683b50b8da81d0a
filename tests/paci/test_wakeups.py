import os
from threading import Thread

import pytest

from paci.wakeups import without_preempting


def policy_of_a_new_thread() -> int:
    policies = []
    thread = Thread(target=lambda: policies.append(os.sched_getscheduler(0)))
    thread.start()
    thread.join()
    return policies.pop()


def test_holds_for_this_thread_inside_and_for_those_it_starts():
    with without_preempting():
        assert os.sched_getscheduler(0) == policy_of_a_new_thread() == os.SCHED_BATCH
    assert os.sched_getscheduler(0) == policy_of_a_new_thread() == os.SCHED_OTHER


def test_ends_with_an_error():
    with pytest.raises(ArithmeticError), without_preempting():
        raise ArithmeticError
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_leaves_a_chosen_policy_alone():
    seen = []

    def one_that_has_chosen() -> None:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        with without_preempting():
            seen.append(os.sched_getscheduler(0))
        seen.append(os.sched_getscheduler(0))

    thread = Thread(target=one_that_has_chosen)
    thread.start()
    thread.join()
    assert seen == [os.SCHED_IDLE, os.SCHED_IDLE]


def test_does_without_where_no_policy_may_be_chosen(monkeypatch):
    def refuse(*_) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    with without_preempting():
        assert os.sched_getscheduler(0) == os.SCHED_OTHER

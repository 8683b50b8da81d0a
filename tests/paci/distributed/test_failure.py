import json
import pickle

import pytest

from paci.distributed.failure import EXIT, LOST, RankFailed, report_failure

FAILURES = [
    (RankFailed.of(1, ArithmeticError("boom"), (2, 57)), False, "ArithmeticError: boom"),
    (RankFailed(1, 2, 57, "SIGKILL", "killed by SIGKILL"), True, "killed by SIGKILL"),
    (RankFailed(1, 2, 57, EXIT, "exit status 3"), True, "exit status 3"),
    (RankFailed(1, 2, 57, LOST, "the process is gone"), False, "the process is gone"),
]


@pytest.mark.parametrize(("failure", "died", "why"), FAILURES)
def test_a_failure_says_who_and_why_wherever_it_is_sent(failure, died, why):
    posted = RankFailed(*json.loads(json.dumps(failure.args)))
    for copy in (failure, pickle.loads(pickle.dumps(failure)), posted):
        assert (copy.args, copy.died, copy.why) == (failure.args, died, why)
        assert str(copy) == f"rank 1 (stage 2, micro-batch 57): {why}"


def test_what_is_not_known_is_not_said():
    assert str(RankFailed(None, None, None, LOST, "gone")) == "a rank: gone"
    assert str(RankFailed(0, None, None, EXIT, "exit status 1")) == "rank 0: exit status 1"


def test_where_in_the_code_is_printed_at_the_rank_that_failed(capsys):
    error = ArithmeticError("boom")
    assert str(report_failure(1, error)) == "rank 1: ArithmeticError: boom"
    assert capsys.readouterr().err == "ArithmeticError: boom\n"
    failure = RankFailed.of(1, error)
    assert report_failure(0, failure) is failure
    assert capsys.readouterr().err == ""

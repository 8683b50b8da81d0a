import os

import pytest
import torch

from experiments.config import compose
from experiments.run import pipelines


@pytest.mark.parametrize(
    ("settings", "promised"),
    [
        (["executor=local"], True),
        (["executor=distributed", "executor.order=static"], True),
        (["executor=distributed", "executor.order=dynamic"], False),
    ],
)
def test_a_fixed_order_promises_equal_bits(settings, promised):
    config = compose(["scale=smoke", *settings])
    assert pipelines.promises_equal_bits(config) is promised


def test_equal_bits_need_deterministic_kernels(monkeypatch):
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    try:
        pipelines.make_deterministic()
        assert torch.are_deterministic_algorithms_enabled()
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    finally:
        torch.use_deterministic_algorithms(False)

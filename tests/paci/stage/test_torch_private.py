import torch

from paci.stage.torch_private import CHECKED


def test_this_pytorch_is_one_that_the_private_functions_were_checked_with():
    """Another one: run all tests of paci/stage, look at the file, and add the version to it."""
    assert ".".join(torch.__version__.split(".")[:2]) in CHECKED

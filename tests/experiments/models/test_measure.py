import torch

from experiments.models import build_stages, measure_units
from paci.partition import partition
from tests.experiments.models.tiny import MODEL


def test_measured_units_cut_the_model():
    units = measure_units(MODEL, vocabulary=31, microbatch=3)
    assert len(units) == 2 * MODEL.layers + 2
    assert all(unit.time > 0 for unit in units)
    build_stages(MODEL, 31, stages=3, seed=0, cut=partition(units, 3))


def test_bytes_are_those_of_the_weights_and_of_what_autograd_saves():
    embedding, attention, mlp, *_, head = measure_units(MODEL, vocabulary=31, microbatch=3)
    width, hidden = 16, 4 * 3 * 8 * 16  # bytes of one float32 (batch, context, width)
    assert embedding.parameter_bytes == 4 * (31 + 8) * width
    assert attention.parameter_bytes == 4 * (2 * width + 4 * width * (width + 1))
    assert mlp.parameter_bytes == 4 * (2 * width + 8 * width * width + 5 * width)
    assert head.parameter_bytes == 4 * (2 * width + 31 * width)
    assert 8 * hidden < mlp.activation_bytes < 25 * hidden
    assert 0 < embedding.activation_bytes < 2 * hidden


def test_activations_grow_with_the_microbatch_and_weights_do_not():
    one, four = (measure_units(MODEL, 31, microbatch)[2] for microbatch in (1, 4))
    assert four.parameter_bytes == one.parameter_bytes
    assert 3.5 < four.activation_bytes / one.activation_bytes <= 4


def test_autocast_is_the_callers():
    with torch.autocast("cpu", torch.bfloat16):
        half = measure_units(MODEL, 31, microbatch=3)[2]
    full = measure_units(MODEL, 31, microbatch=3)[2]
    assert half.activation_bytes != full.activation_bytes

"""The number of micro-batches changes the time of a flush, not its updates, so that one training
can be mapped to another number."""

import pytest
import torch

from experiments import models
from experiments.config import compose
from experiments.optimizers.optimizer import make_optimizer
from experiments.run.cut import cut_for
from paci import LocalPipeline, microbatches

VOCABULARY, BATCH, UPDATES = 257, 16, 3


@pytest.fixture(scope="module")
def weights():
    """weights(m): those of all stages after some updates of m micro-batches, in float64: Adam makes
    a step of a gradient that is nothing but rounding."""
    config = compose(["scale=smoke", "model.dropout=0", f"batch={BATCH}", "method=1f1b-flush"])
    shape = (UPDATES * BATCH, config.model.context)
    tokens = torch.randint(VOCABULARY, shape, generator=torch.Generator().manual_seed(0))

    def weights(m):
        stages = models.build_stages(
            config.model, VOCABULARY, config.stages, seed=0, cut=cut_for(config, VOCABULARY)
        )
        pipeline = LocalPipeline(
            [stage.double() for stage in stages], "1f1b-flush", m, batch=BATCH,
            optimizer=make_optimizer(config), loss_fn=models.loss,
        )  # fmt: skip
        parts = tokens.split(microbatches.sizes(BATCH, m) * UPDATES)
        pipeline.train([(part, part) for part in parts])
        return torch.cat([it.detach().flatten() for stage in stages for it in stage.parameters()])

    return weights


@pytest.mark.parametrize("m", [4, 6, 16])
def test_the_flush_ends_with_the_same_weights_at_any_count(weights, m):
    torch.testing.assert_close(weights(m), weights(8), rtol=0, atol=1e-12)

import pytest
import torch
from transformers import GPT2LMHeadModel

from experiments.models import build_stages, config, count_flops, save_index, save_stage
from paci.partition import partition
from tests.experiments.models.tiny import MODEL


@pytest.mark.parametrize("count", [1, 3])
def test_transformers_reads_what_the_stages_wrote(tmp_path, count):
    stages = build_stages(MODEL, 31, count, seed=0)
    for index, stage in enumerate(stages):
        save_stage(stage, index, count, tmp_path / "model")
    save_index(MODEL, 31, partition(count_flops(config(MODEL, 31)), count), tmp_path / "model")
    loaded, report = GPT2LMHeadModel.from_pretrained(tmp_path / "model", output_loading_info=True)

    assert not any(report.values())  # nothing missing, unexpected or of another shape
    assert not loaded.config.tie_word_embeddings
    assert loaded.lm_head.weight is not loaded.transformer.wte.weight
    hidden = tokens = torch.arange(8)[None]
    for stage in stages:
        hidden = stage.eval()(hidden)
    assert torch.equal(loaded(tokens).logits, hidden)

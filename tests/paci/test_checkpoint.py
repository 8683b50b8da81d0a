import json

import pytest
import torch

from paci import checkpoint
from tests.paci import toys

LAYERS = 4


def pipeline(stages=LAYERS, schedule="1f1b-flush", dropout=0.0, **options):
    modules = toys.cut(toys.stages(LAYERS, dropout), stages)
    return toys.pipeline(modules, schedule, 2, **options)


def save(folder, local, **options):
    return checkpoint.save(folder, local.stages, {"microbatch": local.microbatch}, **options)


def resume(folder, local):
    """Into a fresh pipeline, whose weights are first made wrong."""
    for stage in local.stages:
        with torch.no_grad():
            for p in stage.module.parameters():
                p.zero_()
    local.microbatch = checkpoint.load(checkpoint.newest(folder), local.stages)["microbatch"]
    return local


def parameters(local):
    """By layer, however the layers are cut into stages."""
    return [p for stage in toys.weights(s.module for s in local.stages) for p in stage]


@pytest.mark.parametrize("optimizer", [toys.adamw, toys.sgd])
@pytest.mark.parametrize("schedule", ["1f1b-flush", "paci"])
def test_resumed_equals_uninterrupted_to_the_last_bit(tmp_path, schedule, optimizer):
    batches, options = toys.batches(12), {"schedule": schedule, "optimizer": optimizer}
    straight = pipeline(dropout=0.3, **options)
    straight.train(batches[:6])
    save(tmp_path, straight)
    losses = straight.train(batches[6:]).losses

    resumed = resume(tmp_path, pipeline(dropout=0.3, **options))
    assert [stage.versions.version for stage in resumed.stages] == [3] * LAYERS
    assert resumed.train(batches[6:]).losses == losses
    assert toys.same(parameters(resumed), parameters(straight))


@pytest.mark.parametrize("weights", ["stashed", "double-buffered", "predicted", "corrected"])
def test_whatever_weights_an_action_sees(tmp_path, weights):
    def make():
        modules = toys.cut(toys.stages(LAYERS, 0.0), LAYERS)
        return toys.pipeline(modules, "paci", 4, weights=weights)

    batches, straight = toys.batches(24), make()
    straight.train(batches[:12])
    save(tmp_path, straight)
    losses = straight.train(batches[12:]).losses
    resumed = resume(tmp_path, make())
    assert resumed.train(batches[12:]).losses == losses
    assert toys.same(parameters(resumed), parameters(straight))


@pytest.mark.parametrize(("before", "after"), [(4, 2), (2, 4), (1, 4), (4, 1)])
def test_as_many_stages_as_one_likes(tmp_path, before, after):
    batches = toys.batches(12)
    straight, writer = pipeline(before), pipeline(before)
    losses = straight.train(batches).losses
    writer.train(batches[:6])
    save(tmp_path, writer)
    resumed = resume(tmp_path, pipeline(after))
    assert resumed.train(batches[6:]).losses == losses[6:]
    assert toys.same(parameters(resumed), parameters(straight))


def test_before_the_first_update(tmp_path):
    fresh = pipeline()
    save(tmp_path, fresh)
    resumed, batches = resume(tmp_path, pipeline()), toys.batches(4)
    assert resumed.train(batches).losses == fresh.train(batches).losses


def test_state_comes_back(tmp_path):
    local, state = pipeline(), {"microbatch": 6, "seconds": 1.5, "best": None}
    path = checkpoint.save(tmp_path, local.stages, state)
    assert checkpoint.load(path, local.stages) == state


@pytest.fixture
def two(tmp_path):
    """A pipeline with checkpoints after 2 and 4 micro-batches."""
    local = pipeline()
    for _ in range(2):
        local.train(toys.batches(2))
        save(tmp_path, local)
    return local


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("file", ["stage-0.safetensors", "stage-3.safetensors", "manifest.json"])
@pytest.mark.parametrize("damage", [flip_a_bit, cut_short, lambda path: path.unlink()])
def test_the_one_before_a_damaged_one(tmp_path, two, file, damage):
    last = checkpoint.newest(tmp_path)
    assert last.name == "000000004"
    damage(last / file)
    with pytest.warns(UserWarning, match=f"000000004 is damaged .*{file}.*: passed over"):
        assert checkpoint.newest(tmp_path).name == "000000002"


@pytest.mark.parametrize("crash", ["save_file", "os.rename"])
def test_a_crash_while_writing_leaves_the_previous_one(tmp_path, two, crash, monkeypatch):
    works = iter([checkpoint.save_file] if crash == "save_file" else [])

    def write_one_part_then_crash(*arguments):
        for once in works:
            return once(*arguments)
        raise KeyboardInterrupt

    two.train(toys.batches(2))
    with monkeypatch.context() as patch:
        patch.setattr(f"paci.checkpoint.{crash}", write_one_part_then_crash)
        with pytest.raises(KeyboardInterrupt):
            save(tmp_path, two)
    assert checkpoint.newest(tmp_path).name == "000000004"
    save(tmp_path, two)
    assert checkpoint.newest(tmp_path).name == "000000006"


@pytest.mark.parametrize("keep", [1, 2, 5])
def test_the_last_few_are_kept(tmp_path, keep):
    local = pipeline()
    for m in range(4):
        local.microbatch = 10**m
        save(tmp_path, local, keep=keep)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["000000001", "000000010", "000000100", "000001000"][-keep:]


def test_saving_again_replaces(tmp_path, two):
    two.stages[0].module["0"][0].bias.data.fill_(7.0)
    save(tmp_path, two)
    assert parameters(resume(tmp_path, pipeline()))[1].tolist() == [7.0] * toys.WIDTH


def test_none_yet(tmp_path):
    assert checkpoint.newest(tmp_path / "nowhere") is None
    assert checkpoint.newest(tmp_path) is None


def test_another_model_does_not_fit(tmp_path, two):
    path = checkpoint.newest(tmp_path)
    stages = toys.cut(toys.stages(5), 5)
    deeper, before = toys.pipeline(stages), toys.weights(stages)
    with pytest.raises(ValueError, match=r"does not fit the model: 4.0.weight .* there is nothing"):
        checkpoint.load(path, deeper.stages)
    assert toys.same(toys.weights(stages), before)  # those that do fit, too
    wider = toys.pipeline([toys.Layers({"0": torch.nn.Sequential(torch.nn.Linear(4, 9))})])
    with pytest.raises(
        ValueError, match=r"0.0.weight wants \(9, 4\), there is a shape of \(4, 4\)"
    ):
        checkpoint.load(path, wider.stages)


def test_a_manifest_lists_every_part(two, tmp_path):
    manifest = json.loads((checkpoint.newest(tmp_path) / "manifest.json").read_text())
    assert [*manifest["parts"]] == [f"stage-{i}.safetensors" for i in range(LAYERS)]


class Tied(torch.nn.Module):
    """One weight under two names."""

    def __init__(self):
        super().__init__()
        self.into, self.out = (torch.nn.Linear(toys.WIDTH, toys.WIDTH) for _ in range(2))
        self.out.weight = self.into.weight

    def forward(self, x):
        return self.out(self.into(x))


def test_weights_tied_within_a_stage(tmp_path):
    torch.manual_seed(0)
    straight, batches = toys.pipeline([Tied()]), toys.batches(8)
    straight.train(batches[:4])
    path = save(tmp_path, straight)
    resumed = resume(tmp_path, toys.pipeline([Tied()]))
    assert resumed.train(batches[4:]).losses == straight.train(batches[4:]).losses
    assert toys.same(parameters(resumed), parameters(straight))

    untied = Tied()
    untied.out.weight = torch.nn.Parameter(torch.zeros(toys.WIDTH, toys.WIDTH))
    checkpoint.load(path, toys.pipeline([untied]).stages)
    assert toys.same(untied.out.weight, untied.into.weight)
    assert untied.out.weight.any()


def test_stages_that_call_their_weights_alike_are_refused(tmp_path):
    local = toys.pipeline(toys.stages(2))
    with pytest.raises(ValueError, match="weight"):
        checkpoint.load(save(tmp_path, local), local.stages)


def test_state_that_is_no_tensor_is_refused_before_anything_is_written(tmp_path):
    class Extra(toys.Layers):
        def get_extra_state(self):
            return {"seen": 3}

    local = toys.pipeline([Extra({"0": toys.layer()})])
    with pytest.raises(ValueError, match="but _extra_state of stage 0 is a dict"):
        save(tmp_path, local)
    assert not any(tmp_path.iterdir())

from experiments.config import compose
from experiments.config.derived import run_name


def test_the_name_of_a_run_says_what_is_varied():
    config = compose(["method=paci", "method.accumulation=8", "method.slack=2", "seed=3"])
    assert run_name(config) == "paci-a8-slack2-b16-s3"
    options = ["+method.options.limit=16", "+method.options.measured={forward:1,backward:3}"]
    config = compose(["method=zb-2p", *options])
    assert run_name(config) == "zb-2p-a8-limit=16-measured-b16-s0"

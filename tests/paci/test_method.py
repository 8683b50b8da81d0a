from paci.method import label, options_text


def test_options_are_named_in_one_order():
    options = options_text({"stages_per_rank": 2, "measured": None, "limit": 16})
    assert options == "limit=16 stages_per_rank=2"
    assert label("zb-2p", True, 8, 0, "live", options) == f"zb-2p m=8 {options}"
    assert label("zb-2p", True, 8, 0, "live", options_text({})) == "zb-2p m=8"

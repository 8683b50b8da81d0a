import re

import paci


def test_every_public_name_is_listed_and_there():
    assert {name for name in dir(paci) if not name.startswith("_")} == {*paci.__all__}
    assert all(getattr(paci, name) is not None for name in paci.__all__)
    assert re.match(r"\d+\.\d+", paci.__version__)

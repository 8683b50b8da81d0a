import re

import paci


def test_every_public_name_is_listed_and_there():
    assert {*paci.__all__} <= {*dir(paci)}
    assert all(getattr(paci, name) is not None for name in paci.__all__)
    assert re.match(r"\d+\.\d+", paci.__version__)

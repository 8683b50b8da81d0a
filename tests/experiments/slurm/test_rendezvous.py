import threading
from datetime import timedelta

import pytest

from experiments.slurm import rendezvous


def test_the_address_may_appear_late(tmp_path):
    file = tmp_path / "later" / "1.0.0.address"

    def write():
        file.parent.mkdir()
        file.write_text("node1 1234")

    threading.Thread(target=write).start()
    assert rendezvous._read(file, timedelta(seconds=30)) == ("node1", 1234)
    with pytest.raises(RuntimeError, match="rank 0 did not write"):
        rendezvous._read(tmp_path / "never", timedelta(seconds=0.1))

import pytest
import torch
from hypothesis import settings

settings.register_profile("paci", deadline=None)
settings.load_profile("paci")


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    torch.set_num_threads(1)

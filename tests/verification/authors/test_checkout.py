"""Which folder is compared with: said in one sentence if it is none, warned about if unexpected."""

import subprocess

import pytest

from verification.authors.checkout import checked, difference_from_known


def make_checkout(folder, commit=False):
    (folder / "DistPACI").mkdir()
    (folder / "DistPACI" / "PACIModel.py").write_text("")
    if commit:
        git = ["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run([*git[:3], "init", "-q"], check=True)
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "-m", "first"], check=True)
    return folder


@pytest.mark.parametrize("path", [None, ""])
def test_no_checkout_is_answered_with_where_to_get_one(path):
    with pytest.raises(ValueError, match=r"git clone https://github.com/ItayElam/PACI.* 3e45e71"):
        checked(path)


def test_another_folder_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"is not a checkout.*no DistPACI/PACIModel.py"):
        checked(str(tmp_path))


def test_a_checkout_is_taken(tmp_path):
    assert checked(str(make_checkout(tmp_path))) == tmp_path


def test_another_commit_is_named(tmp_path):
    difference = difference_from_known(make_checkout(tmp_path, commit=True))
    assert "is at " in difference
    assert "written against 3e45e71" in difference


def test_a_copy_without_history_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert "does not say its commit" in difference_from_known(make_checkout(tmp_path))

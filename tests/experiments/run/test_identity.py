from experiments.run.identity import code, meaning

SOURCE = """
def area(width, height):
    return width * height
"""
SAID = """
# A comment.
def area(width, height):
    'Return the area.'

    return (width
            * height)
"""


def test_comments_docstrings_and_layout_are_no_meaning():
    assert meaning(SOURCE) == meaning(SAID)
    assert meaning(SOURCE) != meaning(SOURCE.replace("*", "+"))


def test_the_code_that_computes_is_listed():
    assert {"paci/local.py", "experiments/run/training.py"} <= code().keys()
    assert not any(file.startswith("analysis") for file in code())

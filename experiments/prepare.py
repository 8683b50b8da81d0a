"""Prepare a data set: python -m experiments.prepare [data=kjv|files|openwebtext] [data.KEY=VALUE]

Writes token files below `data.folder`, once; runs only read them.
"""

from experiments import data
from experiments.config import compose
from experiments.terminal.command_line import command, user_errors
from experiments.terminal.options import overrides


@command()
def main() -> None:
    with user_errors():
        corpus = data.prepare(compose(overrides(__doc__)).data)
    for split in (corpus.train, corpus.validation):
        header = split.header
        print(f"{split.path}: {header.tokens:,} tokens of {header.documents:,} documents")


if __name__ == "__main__":
    main()

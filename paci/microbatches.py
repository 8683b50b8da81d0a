"""The sizes of the micro-batches of a window."""


def sizes(batch: int, microbatches: int) -> list[int]:
    """Return the number of sequences in each of the `microbatches` micro-batches of a window.

    Where `microbatches` does not divide `batch`, the first `batch` mod `microbatches` have one
    sequence more than the others, as in the paper:

    >>> sizes(8, 4), sizes(8, 3)
    ([2, 2, 2, 2], [3, 3, 2])

    Raises ValueError if a micro-batch would be empty.
    """
    if not 1 <= microbatches <= batch:
        raise ValueError(
            f"a batch of {batch} sequences cannot be cut into {microbatches} micro-batches; "
            f"accepted are 1 to {batch}"
        )
    size, larger = divmod(batch, microbatches)
    return [size + 1] * larger + [size] * (microbatches - larger)

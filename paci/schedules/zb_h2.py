"""ZB-H2 (Qi et al., ICLR 2024): ZB-H1 with twice as many in flight, and no bubble.

Three stages, m = 5, all actions equally long (digits are micro-batches; `i` is the gradient of the
input, `w` the gradients of the weights):

    stage 0   0  1  2  3  4  0i 0w 1i 1w 2i 2w 3i 3w 4i 4w
    stage 1   .  0  1  2  0i 3  1i 4  2i 0w 3i 1w 4i 2w 3w 4w
    stage 2   .  .  0  0i 1  1i 2  2i 3  3i 4  4i 0w 1w 2w 3w 4w

A stage runs forwards until its first gradient is back, and the weight gradients of stage i run 2i
micro-batches behind, so that every stage has 2N - 1 in flight. Each stage starts and ends a window
one time unit after the stage before it, so windows follow one another without a gap.
"""

from paci.schedules.zb_h1 import ZBH1


class ZBH2(ZBH1):
    """The handcrafted order, for equal times of forward and both halves of the backward."""

    name = "zb-h2"
    depth = 2

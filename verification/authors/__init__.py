"""Compare paci with the authors' own code, bitwise: make verify-authors AUTHORS=<checkout>

Both train the same small GPT-2 on the same data. The authors' code runs first, a process a stage,
and decides by itself what happens when; a recorder notes what every stage did. paci then replays
that order of events, and everything that the two have computed is compared.

    authors' code, its own processes                      paci, replaying
    ┌─────────┐   ┌─────────┐   ┌─────────┐
    │ stage 0 │──▶│ stage 1 │──▶│ stage 2 │              LocalPipeline(stages, FixedOrder(orders))
    │         │◀──│         │◀──│         │                          │
    └────┬────┘   └────┬────┘   └────┬────┘                          │
         │ recorder    │             │                               │
         ▼             ▼             ▼                               ▼
    0F0 0F1 0F2 0B0 | 0F3 ...       events ──▶ orders    losses, weights, Adam's moments,
    losses, weights, Adam's moments,                     drift, in-flight, learning rates
    drift, in-flight, learning rates  ◀─── compare ───▶

Rounding depends on which weights a micro-batch sees in its forward and in its backward. So bitwise
equality after some dozens of updates means that both update at the same places, with the same
gradients, rates and optimizer. Whether paci would also *choose* that order is asked separately:
its schedule is shown what the authors' stage saw at each of its decisions (`decisions.py`).

    checkout.py    which code: where it is, its commit
    cases.py       what is trained, and how: the list of cases
    workload.py    the model, its cut into stages, the data, optimizer and rates
    stand_ins.py   what the authors' code needs to run here: CPU, stock PyTorch, no extra packages
    recorder.py    their stage, with an observer
    train.py       the program that trains one case with the authors' code
    recording.py   events and results of such a training
    decisions.py   paci's schedule, asked what it would have done
    replay.py      training of the same case by paci, in the recorded order
    outcome.py     outcomes of trainings, on either side, and their differences
    compare.py     one case from end to end: the rows of the table
    table.py       the table

None of the authors' code is part of this project: it is imported from the checkout at run time.
"""

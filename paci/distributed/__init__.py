"""A pipeline of processes, one rank each, on torch.distributed."""

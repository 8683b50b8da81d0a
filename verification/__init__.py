"""Checks of paci against code that is not ours; one package for each such code base."""

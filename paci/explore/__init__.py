"""A page to explore schedules: `python -m paci.explore [FILE]` writes one HTML file.

The page needs no network and no server. It simulates in the browser: `simulation.js` is the event
loop, PACI's rule and the draws of `paci.simulate` in JavaScript, and gives the same times to the
last bit. Schedules other than PACI keep the orders that `recorded` records here.
"""

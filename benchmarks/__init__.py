"""The benchmarks: one file each. `make bench` runs them, `python benchmarks/run.py -h` says how to choose."""

"""Is this CUDA program right? Its kernels run on the processor, under the race finder and under AddressSanitizer.

    programs.py   a .cu becomes a program, in one of three modes
    harness.py    a main() for a file that has none
    invented.py   what of a file without a main() is certain
    limits.py     run a program within limits
    contained.py  what a program may change
    kept.py       the judge's part of the cache
    findings.py   what the runs found, and the gravest of it
    rewriters.py  what it takes from tools/

Here nothing imports torch. docs/judge-a-kernel.md is for users.
"""

"""Is this CUDA program right? Its kernels run on the processor, under the race finder and under AddressSanitizer.

    programs.py   a .cu becomes a program, in one of three modes
    harness.py    a main() for a file that has none
    invented.py   what of a file without a main() is certain
    limits.py     run a program within limits
    contained.py  what a program may change
    kept.py       the judge's part of the cache
    findings.py   what the runs found, and the gravest of it
    shown.py      a judgement as text, lines, annotations and SARIF
    pool.py       many judgements at once
    rewriters.py  what it takes from tools/
    python.py     a Python file, and its ModelNew against a reference
    compare.py    the process that has the reference, and compares
    candidate.py  the process of a candidate

Here only the last two import torch. docs/judge-a-kernel.md is for users.
"""

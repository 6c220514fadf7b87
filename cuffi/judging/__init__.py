"""Is this CUDA program right? Its kernels run on the processor, under the race finder and under AddressSanitizer.

    programs.py   a .cu becomes a program, in one of three modes
    harness.py    a main() for a file that has none
    promises.py   what is promised of the arguments that it invents
    invented.py   what of a file without a main() is certain
    limits.py     run a program within limits
    contained.py  what a program may change
    kept.py       the judge's part of the cache
    findings.py   what the runs found, and the gravest of it
    arrays.py     the names of arrays in a line
    remedies.py   what usually helps
    shown.py      a judgement as text, lines, annotations and SARIF
    resident.py   requests and answers
    pool.py       many judgements at once
    rewriters.py  what it takes from tools/
    python.py     a Python file, and its ModelNew against a reference
    worker.py     a process that has imported torch, and forks for each run
    defined.py    what a file of a candidate or a reference must define
    compare.py    the process that has the reference, and compares
    candidate.py  the process of a candidate

Here only the last three import torch, the worker in its own process. docs/judge-a-kernel.md is for users.
"""

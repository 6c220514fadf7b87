"""Is this CUDA program right? Its kernels run on the processor, under the race finder and under AddressSanitizer.

    build.py      a .cu becomes a program, in one of three modes
    kernels.py    a main() for a file that has none
    process.py    run a program within limits
    verdict.py    what the runs found, and the gravest of it

Here nothing imports torch. docs/judge-a-kernel.md is for users.
"""

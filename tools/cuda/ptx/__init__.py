"""Inline PTX on the host: an asm statement becomes C++ that calls include/host/cuda_ptx.h.

statement    finds the asm statements of a list of tokens
text         reads a template: instructions, registers, labels
writer       writes them, by families of instructions: arithmetic, bits, moves, converting, loads, votes, matrices,
             copies
translate    both: a statement as C++, or why it cannot be one
"""

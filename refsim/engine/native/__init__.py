"""Loops of lane code as machine code, where that gives the same bits in less time.

Lane code repeats a loop's NumPy operations trip by trip, and each passes through memory. A loop that only reads shared
memory and computes with floats can run all its trips for a few lanes at a time instead, with its sums in registers.
`plans` finds such loops, `machine_code` writes them for LLVM's compiler with their data where `layouts` says, `running`
decides at run time, makes the checks, and calls them. The NumPy statements stay beside each of them: they run while a
loop has not cost enough to be worth compiling, and whenever a check might have something to report.
"""

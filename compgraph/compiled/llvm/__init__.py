"""Machine code by LLVM: the back end of compiled functions.

A schedule of the executor's becomes steps over buffers (`lowering`); steps that run along the same axes become nests, and buffers
get their places (`planning`); nests become loops of vector instructions (`emission`), and these an object file (`machine`), which
is kept on `disk`.
"""

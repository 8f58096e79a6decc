"""Machine code by LLVM: the back end of compiled functions.

A schedule of the executor's becomes steps over buffers (`lower`), steps that run along the same axes become nests (`group`),
buffers get their places (`plan`), nests become loops of vector instructions (`emit`), and these an object file (`machine`), which
is kept on `disk`.
"""

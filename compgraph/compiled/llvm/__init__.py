"""The LLVM backend of compiled functions.

`lowering` translates a schedule into steps over buffers. `planning` rerolls loops, fuses steps into loop nests and allocates
memory. `emission` generates vectorized LLVM IR. `llvm_compiler` compiles it to object code, which `disk_cache` caches.
"""

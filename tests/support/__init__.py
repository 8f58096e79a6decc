"""Code that tests share: cases, reference checks, programs, and helpers."""

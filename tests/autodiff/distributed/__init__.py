"""Tests of the distributed part. A package, so that its cluster ends with the last of them."""

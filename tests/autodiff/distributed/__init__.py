"""Tests of autodiff.distributed. This is a package, so that its cluster is closed after its last test."""

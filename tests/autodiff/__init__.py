"""Tests of the derivatives."""

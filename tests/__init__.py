"""The tests: folders as in the packages, and programs that use all of them."""

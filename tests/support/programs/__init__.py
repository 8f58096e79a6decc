"""Programs as people write them, with reference derivatives."""

"""Many directions through one operation together."""

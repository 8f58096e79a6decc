"""Writing into nodes with NumPy's meaning: every form NumPy has, each in terms of one door, `store.store`."""

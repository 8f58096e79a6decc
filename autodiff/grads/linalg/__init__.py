"""Rules of linear algebra: products, solutions, determinants, decompositions, and what holds at equal eigenvalues."""

"""Rules of Fourier transforms, of polynomials by their coefficients, and of grids of points."""

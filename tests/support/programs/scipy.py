"""Calls of SciPy, written for plain arrays; `test_programs` also differentiates each plus a second term.

In an expression ``x`` is the argument: a vector of four positive numbers, or a well-conditioned matrix of three
rows in the second table, or a signal of eight numbers in the third.
"""

import importlib
from typing import Any

import numpy as np
import scipy

from tests.support.programs.program import Corpus

SCIPY = Corpus()
PARTS = ("cluster.vq", "cluster.hierarchy", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal")
DEEPER = ("sparse.linalg", "sparse.csgraph", "spatial.distance", "spatial.transform", "special", "stats")
for part in (*PARTS, *DEEPER):
    importlib.import_module(f"scipy.{part}")

VECTOR = np.array([0.6, 1.1, 1.7, 0.3])
MATRIX = np.array([[2.0, 0.3, 0.1], [0.35, 1.5, 0.4], [0.15, 0.45, 3.0]])
SIGNAL = np.array([0.1, 0.8, 0.5, 0.2, 0.9, 0.4, 0.3, 0.7])
POINTS = np.array([[0.2, 0.9], [1.1, 0.3], [0.6, 0.7]])

OF_VECTOR = """
special.logsumexp(x)
special.logsumexp(x, b=np.array([1.0, 2.0, 3.0, 4.0]))
special.softmax(x)**2
special.log_softmax(x)**2
special.expit(x)
special.logit(x / 2)
special.erf(x)
special.erfc(x)
special.erfinv(x / 2)
special.gamma(x)
special.gammaln(x)
special.digamma(x)
special.beta(x, 2.0)
special.betaln(x, 2.0)
special.gammainc(2.0, x)
special.betainc(2.0, 3.0, x / 2)
special.ndtr(x)
special.ndtri(x / 2)
special.log_ndtr(x)
special.jv(0, x)
special.j0(x)
special.iv(1, x)
special.i0e(x)
special.kv(1, x)
special.ellipk(x / 2)
special.ellipkinc(0.5, x / 2)
special.hyp2f1(0.5, 1.0, 1.5, x / 2)
special.hyp1f1(0.5, 1.5, x)
special.zeta(x + 2)
special.lambertw(x).real
special.xlogy(x, x)
special.xlog1py(x, x)
special.entr(x)
special.rel_entr(x, 0.5)
special.kl_div(x, 0.5)
special.huber(1.0, x)
special.pseudo_huber(1.0, x)
special.boxcox(x, 0.4)
special.inv_boxcox(x, 0.4)
special.sinc(x)
special.exprel(x)
special.log1p(x)
special.cosm1(x)
special.cbrt(x)
special.multigammaln(x[0] + 2, 2)
special.comb(x + 3, 2)
special.binom(x + 3, 1.5)
special.factorial(x)
special.poch(x, 2)
special.eval_legendre(3, x)
special.eval_hermite(3, x)
special.sph_harm_y(2, 1, x, 0.3).real
special.spherical_jn(1, x)
special.struve(0, x)
special.airy(x)[0]
special.sici(x)[0]
special.fresnel(x)[1]
special.wofz(x + 0.5j).real
special.voigt_profile(x, 0.5, 0.3)
linalg.norm(x)
linalg.toeplitz(x)**2
linalg.circulant(x)**2
linalg.hankel(x)**2
linalg.block_diag(x, x)**2
linalg.solve_banded((1, 1), np.vstack([x, x + 4, x]), np.ones(4))
linalg.solveh_banded(np.vstack([0.1 * x, x + 4]), np.ones(4))
linalg.solve_toeplitz(x + [4, 0, 0, 0], np.arange(4.0))
linalg.solve_circulant(x + [4, 0, 0, 0], np.arange(4.0))
linalg.eigh_tridiagonal(x, 0.1 * x[1:])[0]**2
linalg.companion(x)**2
linalg.dft(4).real @ x * x
signal.convolve(x, [1.0, 2.0])**2
signal.fftconvolve(x, [1.0, 2.0])**2
signal.oaconvolve(x, [1.0, 2.0])**2
signal.correlate(x, [1.0, 2.0, 0.5])**2
signal.windows.gaussian(8, x[0] + 1)
signal.deconvolve(np.arange(1.0, 9.0), x + [4, 0, 0, 0])[0]
signal.sawtooth(x)
signal.chirp(x, 1.0, 2.0, 3.0)
signal.gausspulse(x, fc=1)
signal.freqz(x)[1].real**2
signal.step(([1.0], [1.0, x[0] + 1]), T=np.linspace(0, 2, 6))[1]
interpolate.interp1d([0.0, 1.0, 2.0], [1.0, 3.0, 2.0])(x)
interpolate.interp1d(np.arange(4), x)([0.5, 1.5, 2.25])**2
interpolate.CubicSpline(np.arange(4), x)(1.3)**2
interpolate.CubicSpline(np.arange(4), np.array([1.0, 0.3, 0.8, 0.2]))(x)
interpolate.PchipInterpolator(np.arange(4), x)(1.3)
interpolate.Akima1DInterpolator(np.arange(4), x)(1.3)
interpolate.BarycentricInterpolator(np.arange(4), x)(1.3)
interpolate.KroghInterpolator(np.arange(4), x)(1.3)
interpolate.lagrange(np.arange(4), x)(1.3)
interpolate.make_interp_spline(np.arange(4), x, k=3)(1.3)
interpolate.UnivariateSpline(np.arange(4), x, s=0)(1.3)
interpolate.splev(1.3, interpolate.splrep(np.arange(4), x))
interpolate.griddata(np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0], [3.0, 3.0]]), x, (1.0, 0.6))
interpolate.RegularGridInterpolator((np.arange(2), np.arange(2)), x.reshape(2, 2))([0.3, 0.6])
interpolate.RBFInterpolator(np.arange(4)[:, None], x)(np.array([[1.3]]))
interpolate.BPoly(x[:, None], [0, 1])(0.3)
interpolate.PPoly(x[:, None], [0, 1])(0.3)
integrate.quad(lambda t: np.exp(-x[0] * t), 0, 1)[0]
integrate.quad(lambda t: t**2, 0, x[0])[0]
integrate.dblquad(lambda s, t: x[0] * s * t, 0, 1, 0, 1)[0]
integrate.fixed_quad(lambda t: np.exp(-x[0] * t), 0, 1)[0]
integrate.quad_vec(lambda t: np.exp(-x * t), 0, 1)[0]
integrate.trapezoid(x)**2
integrate.trapezoid(x**2, x)
integrate.simpson(x)**2
integrate.cumulative_trapezoid(x)**2
integrate.romb(np.append(x, 1.0))**2
integrate.odeint(lambda y, t: -x[0] * y, x[1], [0.0, 0.5, 1.0], rtol=1e-11, atol=1e-12)
integrate.solve_ivp(lambda t, y: -x * y, (0, 1), x, rtol=1e-10, atol=1e-12).y[:, -1]
optimize.brentq(lambda t: t**3 - x[0], 0, 3, xtol=1e-14)
optimize.newton(lambda t: t**3 - x[0], 1.0, tol=1e-13)
optimize.root_scalar(lambda t: t**3 - x[0], bracket=(0, 3), xtol=1e-14).root
optimize.fsolve(lambda t: t**3 - x, np.ones(4), xtol=1e-13)
optimize.root(lambda t: t**3 + t - x, np.ones(4), tol=1e-13).x
optimize.fixed_point(lambda t: np.cos(t) * x[0], 0.5, xtol=1e-13)
optimize.minimize_scalar(lambda t: (t - x[0])**2 + x[1]).fun
optimize.minimize(lambda t: np.sum((t - x)**2) + x[0], np.ones(4), tol=1e-10).fun
optimize.least_squares(lambda t: t - x**2, np.ones(4), xtol=1e-14, ftol=1e-14, gtol=1e-14).x
optimize.curve_fit(lambda t, a, b: a * t + b, np.arange(4.0), x)[0]**2
optimize.nnls(np.vstack([np.eye(3), np.ones(3)]), x)[0]**2
optimize.lsq_linear(np.vstack([np.eye(3), np.ones(3)]), x).x**2
optimize.linear_sum_assignment(-np.outer(x, x))[1] * x
optimize.rosen(x)
optimize.rosen_der(x)
optimize.approx_fprime(x, lambda t: np.sum(t**3), 1e-3)
stats.norm.pdf(x)
stats.norm.cdf(x, loc=0.3, scale=2.0)
stats.norm.logpdf(1.0, x, 0.7)
stats.norm(x, 0.7).logpdf(1.0)
stats.norm.ppf(x / 2)
stats.t.logpdf(x, 3)
stats.gamma.logpdf(x, 2.5)
stats.beta.pdf(x / 2, 2, 3)
stats.expon.sf(x, scale=2)
stats.poisson.logpmf(3, x)
stats.binom.logpmf(3, 7, x / 2)
stats.lognorm.pdf(x, 0.8)
stats.multivariate_normal.logpdf(x, np.zeros(4), np.eye(4))
stats.multivariate_normal(x, np.eye(4)).logpdf(np.zeros(4))
stats.dirichlet.logpdf([0.1, 0.2, 0.3, 0.4], x + 1)
stats.zscore(x)**3
stats.skew(x)
stats.kurtosis(x)
stats.gmean(x)
stats.hmean(x)
stats.pmean(x, 3)
stats.tmean(x)
stats.trim_mean(x, 0.25)
stats.sem(x)
stats.variation(x)
stats.iqr(x)
stats.moment(x, 3)
stats.entropy(x)
stats.wasserstein_distance(x, [0.0, 1.0, 2.0])
stats.energy_distance(x, [0.0, 1.0, 2.0])
stats.pearsonr(x, [1.0, 3.0, 2.0, 0.5])[0]
stats.linregress([0.0, 1.0, 2.0, 4.0], x).slope**2
stats.ttest_1samp(x, 0.5).statistic
stats.ttest_ind(x, [0.5, 1.5, 0.2]).pvalue
stats.f_oneway(x, [0.5, 1.5, 0.2]).statistic
stats.chisquare(x, np.full(4, np.mean(x))).statistic
stats.gaussian_kde(x)(0.8)
stats.boxcox(x, 0.4)
stats.yeojohnson(x, 0.4)
stats.boxcox_llf(0.5, x)
stats.theilslopes(x)[0]**2
stats.siegelslopes(x)[0]**2
stats.circmean(x)
stats.differential_entropy(np.concatenate([x, x + 2.2, x * 5.3]))
stats.binned_statistic([0.0, 1.0, 2.0, 3.0], x, bins=2).statistic**2
stats.rankdata(x) * x
spatial.distance.euclidean(x, np.ones(4))
spatial.distance.sqeuclidean(x, np.ones(4))
spatial.distance.cosine(x, [1.0, 2.0, 3.0, 4.0])
spatial.distance.cityblock(x, np.ones(4))
spatial.distance.minkowski(x, np.ones(4), 3)
spatial.distance.mahalanobis(x, np.ones(4), np.eye(4))
spatial.distance.correlation(x, [1.0, 2.0, 3.0, 5.0])
spatial.distance.jensenshannon(x, np.ones(4))
spatial.distance.cdist(x.reshape(2, 2), np.array([[0.1, 0.2]]))
spatial.distance.pdist(x.reshape(2, 2))
spatial.distance.squareform(x[:3])**2
spatial.distance_matrix(x.reshape(2, 2), np.array([[0.1, 0.2]]))
spatial.KDTree(np.array([[0.0, 0.0], [1.0, 1.0]])).query(x.reshape(2, 2))[0]
spatial.KDTree(x.reshape(2, 2)).query([0.0, 0.0])[0]
spatial.transform.Rotation.from_rotvec(x[:3]).as_matrix()**3
spatial.transform.Rotation.from_quat(x).apply([1.0, 2.0, 3.0])
spatial.transform.Rotation.from_euler("xyz", x[:3]).apply([1.0, 2.0, 3.0])
spatial.ConvexHull(np.vstack([POINTS, x.reshape(2, 2) * 3])).volume
spatial.procrustes(POINTS, POINTS**2 + x[:2])[2] * x
sparse.csr_matrix(np.eye(4)) @ x * x
sparse.csr_array(np.eye(4)).dot(x)**2
sparse.diags_array([x, 0.1 * x[:3]], offsets=[0, 1]).sum(axis=0)**2
sparse.diags_array(x).toarray()**2
sparse.coo_matrix((x, ([0, 1, 2, 3], [1, 2, 3, 0])), shape=(4, 4)).toarray()**2
sparse.csr_array(np.outer(x, x)).sum()
sparse.eye_array(4).multiply(x).sum()**2
sparse.linalg.spsolve(sparse.csc_array(np.diag([1.0, 2.0, 3.0, 4.0])), x)**2
sparse.linalg.cg(np.diag([1.0, 2.0, 3.0, 4.0]), x, rtol=1e-12)[0]**2
sparse.linalg.gmres(np.diag([1.0, 2.0, 3.0, 4.0]), x, rtol=1e-12)[0]**2
sparse.linalg.LinearOperator((4, 4), matvec=lambda v: 2 * v) @ x * x
sparse.linalg.expm_multiply(np.diag([0.1, 0.2, 0.3, 0.4]), x)**2
sparse.csgraph.shortest_path(np.diag(x[:3], 1))[0, 3]
sparse.csgraph.minimum_spanning_tree(np.outer(x, x)).sum()
sparse.csgraph.laplacian(np.outer(x, x))**2
cluster.vq.vq(x.reshape(2, 2), np.array([[0.1, 0.2], [1.0, 0.5]]))[1]
cluster.vq.whiten(x.reshape(2, 2))
cluster.vq.kmeans(x, np.array([0.5, 1.5]))[0]**2
cluster.hierarchy.linkage(x[:, None])[:, 2]
"""

OF_MATRIX = """
linalg.inv(x)
linalg.pinv(x)
linalg.det(x)
linalg.solve(x, np.ones(3))
linalg.solve(x @ x.T, np.ones(3), assume_a="pos")
linalg.solve_triangular(x, np.ones(3), lower=True)
linalg.lstsq(x, np.ones(3))[0]
linalg.cholesky(x @ x.T)
linalg.cho_solve(linalg.cho_factor(x @ x.T), np.ones(3))
linalg.lu(x)[2]
linalg.lu_solve(linalg.lu_factor(x), np.ones(3))
linalg.ldl(x + x.T)[1]**2
linalg.qr(x)[1]
linalg.svd(x)[1]
linalg.svdvals(x)
linalg.eigh(x + x.T)[0]**2
linalg.eigvalsh(x + x.T)**2
linalg.eigvals(x).real**2
linalg.eig(x)[0].real**2
linalg.schur(x)[0]**2
linalg.polar(x)[1]
linalg.hessenberg(x)**2
linalg.expm(x)
linalg.logm(x)
linalg.sqrtm(x)
linalg.cosm(x)
linalg.sinhm(x)
linalg.funm(x, np.exp)
linalg.fractional_matrix_power(x, 0.5)
linalg.norm(x, 2)
linalg.norm(x, "nuc")
linalg.khatri_rao(x, x)
linalg.solve_sylvester(x, x.T, np.eye(3))
linalg.solve_continuous_lyapunov(x, np.eye(3))
linalg.solve_discrete_lyapunov(x / 5, np.eye(3))
linalg.solve_continuous_are(x, np.eye(3), np.eye(3), np.eye(3))
linalg.null_space(x[:2])[0, 0]**2
linalg.subspace_angles(x[:, :1], np.ones((3, 1)))
linalg.blas.dgemm(1.0, x, x)
linalg.lapack.dgesv(x, np.ones(3))[2]
linalg.orthogonal_procrustes(x, np.eye(3))[1]
linalg.matmul_toeplitz(x[0], x[1])**2
stats.multivariate_normal.logpdf([0.1, 0.2, 0.3], np.zeros(3), x @ x.T)
stats.wishart.logpdf(np.eye(3), 4, x @ x.T)
stats.multivariate_t.logpdf([0.1, 0.2, 0.3], np.zeros(3), x @ x.T)
stats.matrix_normal.logpdf(x, np.zeros((3, 3)))
ndimage.gaussian_filter(x, 1.0)**2
ndimage.uniform_filter(x, 2)**2
ndimage.median_filter(x, 3)**2
ndimage.maximum_filter(x, 2)**2
ndimage.minimum_filter(x, 2)**2
ndimage.sobel(x)**2
ndimage.laplace(x)**2
ndimage.convolve(x, np.arange(9.0).reshape(3, 3))**2
ndimage.correlate(x, np.arange(9.0).reshape(3, 3))**2
ndimage.rotate(x, 30)**2
ndimage.zoom(x, 2)**2
ndimage.shift(x, 0.3)**2
ndimage.affine_transform(x, np.array([[0.8, 0.1], [0.0, 0.9]]))**2
ndimage.map_coordinates(x, [[0.3, 1.2], [1.1, 0.4]])**2
ndimage.generic_filter(x, np.sum, 2)**2
ndimage.center_of_mass(x)
ndimage.sum_labels(x, [[1, 1, 2], [1, 2, 2], [1, 1, 1]], [1, 2])**2
ndimage.grey_dilation(x, 2)**2
ndimage.fourier_gaussian(x, 1.0)**2
signal.convolve2d(x, np.ones((2, 2)))**2
signal.wiener(x, 3)**2
sparse.csr_matrix(np.eye(3)) @ x @ x
sparse.csr_matrix(x).multiply(x).sum()
sparse.linalg.norm(sparse.csr_array(x))
sparse.linalg.splu(sparse.csc_array(x)).solve(np.ones(3))
sparse.linalg.eigsh(x @ x.T, k=1, v0=np.ones(3))[0]
sparse.linalg.svds(x, k=1)[1]
sparse.linalg.expm(sparse.csc_array(x)).toarray()
interpolate.RectBivariateSpline(np.arange(3), np.arange(3), x, kx=2, ky=2)(0.4, 1.3)
spatial.distance.cdist(x, x + 1)
spatial.Delaunay(POINTS).find_simplex(x[:, :2]) * x[0]
fft.fft2(x).real**2
fft.dctn(x)**2
"""

OF_SIGNAL = """
fft.fft(x).real**2
fft.rfft(x).imag**2
fft.irfft(x)**2
fft.ifft(x).real**2
fft.hfft(x)**2
fft.dct(x)**2
fft.idct(x)**2
fft.dst(x)**2
fft.fftshift(x) * np.arange(8)
fft.fht(x, 0.1, 0.5)**2
signal.lfilter([1.0, 0.5], [1.0, -0.3], x)**2
signal.lfilter([x[0], 0.5], [1.0, -x[1] / 4], SIGNAL)**2
signal.filtfilt([0.5, 0.5], [1.0], x, padlen=2)**2
signal.sosfilt(scipy.signal.butter(2, 0.3, output="sos"), x)**2
signal.savgol_filter(x, 5, 2)**2
signal.medfilt(x, 3)**2
signal.detrend(x)**2
signal.hilbert(x).imag**2
signal.resample(x, 6)**2
signal.resample_poly(x, 2, 1)**2
signal.decimate(x, 2, n=1, ftype="fir")**2
signal.upfirdn([1.0, 0.5], x, 2)**2
signal.periodogram(x)[1]
signal.welch(x, nperseg=4)[1]
signal.stft(x, nperseg=4)[2].real**2
signal.spectrogram(x, nperseg=4)[2]
signal.coherence(x, x[::-1], nperseg=4)[1]
signal.csd(x, x[::-1], nperseg=4)[1].real**2
signal.lombscargle(np.arange(8.0), x, [0.5, 1.0])
signal.find_peaks(x)[0] * x[1]
signal.peak_prominences(x, [1])[0]
signal.argrelextrema(x, np.greater)[0] * x[1]
signal.order_filter(x, np.ones(3), 1)**2
signal.cspline1d(x)**2
signal.czt(x).real**2
signal.lsim(([1.0], [1.0, 1.0]), x, np.arange(8.0))[1]**2
signal.zoom_fft(x, 0.4, m=4).real**2
ndimage.gaussian_filter1d(x, 1.0)**2
ndimage.uniform_filter1d(x, 3)**2
ndimage.convolve1d(x, [0.2, 0.6, 0.3])**2
ndimage.spline_filter1d(x)**2
ndimage.gaussian_laplace(x, 1.0)**2
stats.spearmanr(x, SIGNAL[::-1]).statistic * x[0]
stats.trimboth(x, 0.2)
stats.sigmaclip(x).clipped**2
stats.norm.fit(x)
stats.bootstrap((x,), np.mean, n_resamples=20, rng=1, method="percentile").standard_error
stats.cramervonmises(x, "norm").statistic
stats.shapiro(x).statistic
stats.jarque_bera(x).statistic
stats.median_abs_deviation(x)
interpolate.BSpline(np.arange(12.0), x, 3)(5.3)**2
"""


def declare(table: str, point: Any) -> None:
    """Add the expressions of a table, each as a function of its own."""
    package = {name: getattr(scipy, name) for name in {part.partition(".")[0] for part in (*PARTS, *DEEPER)}}
    around = {**package, "np": np, "scipy": scipy, "SIGNAL": SIGNAL, "POINTS": POINTS}
    for expression in table.strip().splitlines():
        SCIPY.add(expression, eval(f"lambda x: {expression}", around), point)


declare(OF_VECTOR, VECTOR)
declare(OF_MATRIX, MATRIX)
declare(OF_SIGNAL, SIGNAL)

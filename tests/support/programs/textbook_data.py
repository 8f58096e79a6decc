"""Textbook programs: statistics, machine learning, signals, images, physics, engineering and finance."""

import math

import numpy as np
import pandas as pd
import scipy.fft
import scipy.integrate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.sparse
import scipy.spatial
import scipy.special
import scipy.stats

from tests.support.programs.textbook import TEXTBOOK

X = np.array([[0.5, 1.2], [1.5, -0.3], [-0.7, 0.8], [0.1, -1.4], [0.9, 0.4]])
LABELS = np.array([1, 0, 1, 0, 1])
SERIES = np.array([0.3, 0.7, 0.2, 0.9, 1.4, 1.1])


@TEXTBOOK.at(np.array([0.2, -0.4, 0.1]))
def logistic_regression(w):
    z = X @ w[:2] + w[2]
    p = 1 / (1 + np.exp(-z))
    return -np.mean(LABELS * np.log(p) + (1 - LABELS) * np.log(1 - p))


@TEXTBOOK.at(np.array([0.2, -0.4]))
def logistic_regression_math_loop(w):
    loss = 0.0
    for row, label in zip(X, LABELS):
        p = 1 / (1 + math.exp(-(row[0] * w[0] + row[1] * w[1])))
        loss -= label * math.log(p) + (1 - label) * math.log(1 - p)
    return loss


@TEXTBOOK.at(np.array([[0.2, -0.4, 0.1], [0.5, 0.3, -0.2]]))
def softmax_with_buffer(w):
    scores = X @ w
    probs = np.zeros(scores.shape)
    for i in range(len(scores)):
        e = np.exp(scores[i] - np.max(scores[i]))
        probs[i, :] = e / np.sum(e)
    return -np.sum(np.log(probs[np.arange(5), [0, 1, 2, 0, 1]]))


@TEXTBOOK.at(np.array([0.3, 0.2, -0.5, 0.4, 0.6, -0.1, 0.2, 0.7, 0.1]))
def network_of_flat_weights(w):
    w1, b1, w2, b2 = w[:4].reshape(2, 2), w[4:6], w[6:8], w[8]
    hidden = np.maximum(X @ w1 + b1, 0)
    return np.mean((hidden @ w2 + b2 - LABELS) ** 2)


@TEXTBOOK.at(np.array([[0.4, 0.9], [0.0, -1.0]]))
def kmeans_inertia(centres):
    distances = np.sqrt(((X[:, np.newaxis] - centres) ** 2).sum(axis=2))
    nearest = np.argmin(distances, axis=1)
    return sum(np.sum((X[nearest == k] - centres[k]) ** 2) for k in range(2))


@TEXTBOOK.at(np.array([[0.4, 0.9], [0.0, -1.0]]))
def kmeans_cdist(centres):
    return np.sum(np.min(scipy.spatial.distance.cdist(X, centres), axis=1))


@TEXTBOOK.at(np.array([[0.4, 0.9], [0.0, -1.0], [1.0, 0.3]]))
def pairwise_distance_buffer(points):
    n = len(points)
    d = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1, n):
            d[i, j] = d[j, i] = np.linalg.norm(points[i] - points[j])
    return d.sum()


@TEXTBOOK.at(np.array([0.6, 1.1, 1.7]))
def least_squares(y):
    a = np.column_stack([np.ones(3), [0.0, 1.0, 3.0]])
    coef, *_ = np.linalg.lstsq(a, y, rcond=None)
    return coef[1] ** 2


@TEXTBOOK.at(0.3)
def ridge_regression(penalty):
    w = np.linalg.solve(X.T @ X + penalty * np.eye(2), X.T @ LABELS)
    return w @ w


@TEXTBOOK.at(np.array([0.1, 0.4]))
def kalman_filter(noise):
    q, r = noise
    x, p, loglik = 0.0, 1.0, 0.0
    estimates = np.zeros(len(SERIES))
    for t, z in enumerate(SERIES):
        p = p + q
        s = p + r
        loglik += -0.5 * (np.log(2 * np.pi * s) + (z - x) ** 2 / s)
        k = p / s
        x = x + k * (z - x)
        p = (1 - k) * p
        estimates[t] = x
    return loglik + np.mean(estimates)


@TEXTBOOK.at(0.05, 0.2)
def kalman_filter_matrices(q, r):
    f, h = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    x, p = np.zeros(2), np.eye(2)
    for z in SERIES:
        x, p = f @ x, f @ p @ f.T + q * np.eye(2)
        s = h @ p @ h.T + r
        k = p @ h.T @ np.linalg.inv(s)
        x = x + (k @ (z - h @ x).reshape(1, 1)).ravel()
        p = (np.eye(2) - k @ h) @ p
    return x[0] + x[1]


@TEXTBOOK.at(np.array([0.7, 0.6, 0.9, 0.3]))
def hmm_forward_scaled(p):
    transition = np.array([[p[0], 1 - p[0]], [1 - p[1], p[1]]])
    emission = np.array([[p[2], 1 - p[2]], [p[3], 1 - p[3]]])
    observed = [0, 1, 1, 0, 1]
    alpha, scale = np.zeros((5, 2)), np.zeros(5)
    alpha[0] = np.array([0.5, 0.5]) * emission[:, observed[0]]
    for t in range(5):
        if t > 0:
            alpha[t] = (alpha[t - 1] @ transition) * emission[:, observed[t]]
        scale[t] = np.sum(alpha[t])
        alpha[t] = alpha[t] / scale[t]
    return np.sum(np.log(scale))


@TEXTBOOK.at(np.array([0.3, 0.5]))
def markov_chain_stationary(p):
    transition = np.array([[1 - p[0], p[0]], [p[1], 1 - p[1]]])
    state = np.array([1.0, 0.0])
    for _ in range(100):
        state = state @ transition
    return state[0]


@TEXTBOOK.at(np.array([0.3, 0.5]))
def markov_matrix_power(p):
    transition = np.zeros((2, 2))
    transition[0, 0], transition[0, 1] = 1 - p[0], p[0]
    transition[1, 0], transition[1, 1] = p[1], 1 - p[1]
    return np.linalg.matrix_power(transition, 4)[0, 1]


@TEXTBOOK.at(np.array([0.4, 1.3, 0.35]))
def gaussian_mixture(p):
    return -np.sum(np.log(p[2] * scipy.stats.norm.pdf(SERIES, p[0], 0.5) + (1 - p[2]) * scipy.stats.norm.pdf(SERIES, p[1], 0.5)))


@TEXTBOOK.at(0.9, 0.6)
def normal_negative_loglik(mu, sigma):
    return -np.sum(scipy.stats.norm.logpdf(SERIES, loc=mu, scale=sigma))


@TEXTBOOK.at(2.0, 1.5)
def gamma_likelihood_math(shape, rate):
    return sum(shape * math.log(rate) + (shape - 1) * math.log(v) - rate * v - math.lgamma(shape) for v in SERIES)


@TEXTBOOK.at(np.array([0.3, 0.5]))
def poisson_regression(b):
    rate = np.exp(b[0] + b[1] * SERIES)
    counts = np.array([1, 2, 0, 3, 5, 2])
    return np.sum(rate - counts * np.log(rate) + scipy.special.gammaln(counts + 1))


@TEXTBOOK.at(np.array([0.1, 0.3, 0.5]))
def garch_likelihood(p):
    omega, alpha, beta = p
    returns = SERIES - np.mean(SERIES)
    sigma2 = np.zeros(len(returns))
    sigma2[0] = np.var(returns)
    for t in range(1, len(returns)):
        sigma2[t] = omega + alpha * returns[t - 1] ** 2 + beta * sigma2[t - 1]
    return 0.5 * np.sum(np.log(sigma2) + returns**2 / sigma2)


@TEXTBOOK.at(np.array([0.5, -0.2]))
def autoregression_residuals(phi):
    residuals = [SERIES[t] - phi[0] * SERIES[t - 1] - phi[1] * SERIES[t - 2] for t in range(2, 6)]
    return np.sum(np.square(residuals))


@TEXTBOOK.at(0.4)
def exponential_smoothing(alpha):
    s = np.empty_like(SERIES)
    s[0] = SERIES[0]
    for t in range(1, len(SERIES)):
        s[t] = alpha * SERIES[t] + (1 - alpha) * s[t - 1]
    return np.sum((SERIES[1:] - s[:-1]) ** 2)


@TEXTBOOK.at(np.array([0.3, 0.7, 1.2, 0.4]))
def correlation_coefficient(x):
    return np.corrcoef(x, [1.0, 3.0, 2.0, 0.5])[0, 1]


@TEXTBOOK.at(np.array([0.3, 0.7, 1.2, 0.4]))
def standardised_moments(x):
    z = (x - x.mean()) / x.std(ddof=1)
    return np.mean(z**3) + np.mean(z**4)


@TEXTBOOK.at(np.array([0.3, 0.7, 1.2, 0.4]))
def pearson_and_linregress(x):
    fit = scipy.stats.linregress([0.0, 1.0, 2.0, 4.0], x)
    return fit.slope + fit.rvalue


@TEXTBOOK.at(0.35)
def kernel_density(bandwidth):
    grid = np.linspace(-1, 2, 7)
    density = np.zeros(7)
    for v in SERIES:
        density += np.exp(-0.5 * ((grid - v) / bandwidth) ** 2) / (bandwidth * math.sqrt(2 * math.pi))
    return np.sum(np.log(density / len(SERIES)))


@TEXTBOOK.at(np.array([[1.0, 0.4], [0.2, 1.5], [0.7, -0.5]]))
def principal_variance(data):
    centred = data - data.mean(axis=0)
    values = np.linalg.eigvalsh(centred.T @ centred / (len(data) - 1))
    return values[-1] / values.sum()


@TEXTBOOK.at(0.5, 1.2)
def missing_data_nanmean(a, b):
    observed = np.array([1.0, np.nan, 2.5, 3.1, np.nan])
    predicted = a + b * np.arange(5)
    return np.nanmean((observed - predicted) ** 2)


@TEXTBOOK.at(np.array([0.5, 1.2]))
def missing_data_masked_sum(p):
    observed = np.array([1.0, np.nan, 2.5, 3.1, np.nan])
    residual = observed - (p[0] + p[1] * np.arange(5))
    return np.sum(np.where(np.isnan(residual), 0, residual**2))


@TEXTBOOK.at(np.array([0.5, -1.2, 0.8]))
def log_of_positive_part(x):
    with np.errstate(all="ignore"):
        return np.sum(np.where(x > 0, np.log(x), 0))


@TEXTBOOK.at(np.array([0.5, 0.0, 0.8]), 1.5)
def entropy_with_zero(p, scale):
    with np.errstate(all="ignore"):
        terms = np.where(p > 0.1, p * np.log(p * scale), 0.0)
    return -np.sum(terms)


@TEXTBOOK.at(np.array([0.2, 0.5, -0.3, 0.8]))
def convolution_loops(kernel):
    image = np.arange(16.0).reshape(4, 4) / 10
    k = kernel.reshape(2, 2)
    out = np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            out[i, j] = np.sum(image[i : i + 2, j : j + 2] * k)
    return np.sum(np.tanh(out))


@TEXTBOOK.at(np.array([[0.1, 0.9, 0.3], [0.5, 0.4, 0.8], [0.7, 0.2, 0.6]]))
def image_gaussian_blur(image):
    return np.sum(scipy.ndimage.gaussian_filter(image, 1.0) ** 2)


@TEXTBOOK.at(np.array([[0.1, 0.9, 0.3], [0.5, 0.4, 0.8], [0.7, 0.2, 0.6]]))
def image_histogram_stretch(image):
    low, high = image.min(), image.max()
    stretched = (image - low) / (high - low)
    return np.mean(stretched**2)


@TEXTBOOK.at(np.array([[0.1, 0.9, 0.3], [0.5, 0.4, 0.8], [0.7, 0.2, 0.6]]))
def image_padded_sobel(image):
    padded = np.zeros((5, 5))
    padded[1:-1, 1:-1] = image
    gx = padded[1:-1, 2:] - padded[1:-1, :-2]
    gy = padded[2:, 1:-1] - padded[:-2, 1:-1]
    return np.sum(np.sqrt(gx**2 + gy**2))


@TEXTBOOK.at(np.array([0.1, 0.8, 0.5]))
def dynamic_time_warping(s):
    other = [0.2, 0.6, 0.9, 0.4]
    cost = np.full((4, 5), np.inf)
    cost[0, 0] = 0
    for i in range(1, 4):
        for j in range(1, 5):
            d = (s[i - 1] - other[j - 1]) ** 2
            cost[i, j] = d + min(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1])
    return cost[3, 4]


@TEXTBOOK.at(np.array([0.1, 0.8, 0.5, 0.2]))
def attention_loop(x):
    out = []
    for i in range(4):
        weights = np.exp(x[i] * x)
        out.append(np.sum(weights * x) / np.sum(weights))
    return np.mean(np.array(out) ** 2)


@TEXTBOOK.at(np.array([0.5, 0.3, -0.4]))
def recurrent_states_buffer(w):
    h = np.zeros(len(SERIES) + 1)
    for t, v in enumerate(SERIES):
        h[t + 1] = np.tanh(w[0] * h[t] + w[1] * v + w[2])
    return np.sum(h)


@TEXTBOOK.at(np.array([0.1, 0.8, 0.5, 0.2, 0.9, 0.4, 0.3, 0.7]))
def fft_low_pass(signal):
    spectrum = np.fft.fft(signal)
    frequencies = np.fft.fftfreq(len(signal))
    spectrum[np.abs(frequencies) > 0.2] = 0
    return np.sum(np.real(np.fft.ifft(spectrum)) ** 2)


@TEXTBOOK.at(np.array([0.1, 0.8, 0.5, 0.2, 0.9, 0.4, 0.3, 0.7]))
def fft_power_spectrum_scipy(signal):
    return np.sum(np.log1p(np.abs(scipy.fft.rfft(signal)) ** 2))


@TEXTBOOK.at(np.array([0.1, 0.8, 0.5, 0.2, 0.9, 0.4]))
def iir_filter(signal):
    b, a = scipy.signal.butter(2, 0.3)
    return np.sum(scipy.signal.lfilter(b, a, signal) ** 2)


@TEXTBOOK.at(np.array([0.1, 0.8, 0.5, 0.2, 0.9, 0.4]))
def moving_average(signal):
    return np.sum(np.convolve(signal, np.ones(3) / 3, mode="valid") ** 2)


@TEXTBOOK.at(np.array([0.1, 0.8, 0.5, 0.2, 0.9, 0.4]))
def moving_average_cumsum(signal):
    c = np.cumsum(np.insert(signal, 0, 0))
    return np.sum(((c[3:] - c[:-3]) / 3) ** 2)


@TEXTBOOK.at(np.array([0.1, 0.8, 0.5, 0.2, 0.9, 0.4]))
def median_filter_loop(signal):
    out = signal.copy()
    for i in range(1, len(signal) - 1):
        out[i] = np.median(signal[i - 1 : i + 2])
    return np.sum(out**2)


@TEXTBOOK.at(0.7)
def dft_by_hand(f):
    t = np.arange(8)
    x = np.cos(f * t)
    out = np.zeros(8, dtype=complex)
    for k in range(8):
        out[k] = np.sum(x * np.exp(-2j * np.pi * k * t / 8))
    return np.sum(np.abs(out[1:3]))


@TEXTBOOK.at(np.array([1.0, 2.0, 0.5, 1.5]))
def graph_laplacian_sparse(weights):
    m = scipy.sparse.csr_matrix(([1.0, 2.0, 3.0, 4.0], ([0, 1, 2, 3], [1, 2, 3, 0])), shape=(4, 4))
    return weights @ (m @ weights)


@TEXTBOOK.at(np.array([1.0, 2.0, 0.5]))
def sparse_matrix_of_values(values):
    m = scipy.sparse.csr_matrix((values, ([0, 1, 2], [1, 2, 0])), shape=(3, 3))
    return np.sum((m @ np.array([1.0, 2.0, 3.0])) ** 2)


@TEXTBOOK.at(np.array([0.3, 0.7, 1.2, 0.4]))
def pandas_series_times_array(x):
    prices = pd.Series([1.0, 2.0, 3.0, 4.0])
    return (prices * x).sum()


@TEXTBOOK.at(np.array([0.3, 0.7, 1.2, 0.4]))
def pandas_rolling_mean(x):
    return (pd.Series(x).rolling(2).mean().dropna() ** 2).sum()


@TEXTBOOK.at(np.array([0.3, 0.7, 1.2, 0.4]))
def pandas_groupby_mean(x):
    frame = pd.DataFrame({"group": ["a", "b", "a", "b"], "value": x})
    return (frame.groupby("group")["value"].mean() ** 2).sum()


@TEXTBOOK.at(0.6)
def pandas_column_scaled(rate):
    frame = pd.DataFrame({"price": [1.0, 2.0, 4.0]})
    frame["discounted"] = frame["price"] * np.exp(-rate)
    return frame["discounted"].sum()


@TEXTBOOK.at(np.array([0.4, 1.5]))
def pandas_columns_to_numpy(w):
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [0.3, 0.2, 0.1]})
    return np.sum((frame[["a", "b"]].to_numpy() @ w - 1) ** 2)


@TEXTBOOK.at(np.array([0.4, 1.5, 0.9]))
def pandas_ewm_and_pct_change(prices):
    return pd.Series(prices).pct_change().dropna().ewm(span=2).mean().iloc[-1]


@TEXTBOOK.at(20.0, 0.7)
def projectile_with_drag(speed, angle):
    vx, vy = speed * np.cos(angle), speed * np.sin(angle)
    x, y, dt = 0.0, 0.0, 0.01
    for _ in range(60):
        v = np.hypot(vx, vy)
        vx, vy = vx - 0.02 * v * vx * dt, vy - (9.81 + 0.02 * v * vy) * dt
        x, y = x + vx * dt, y + vy * dt
    return x


@TEXTBOOK.at(20.0, 0.7)
def projectile_range_math(speed, angle):
    return speed**2 * math.sin(2 * angle) / 9.81


@TEXTBOOK.at(0.4)
def rotation_matrix(angle):
    r = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return np.sum((r @ np.array([1.0, 2.0])) ** 3)


@TEXTBOOK.at(np.array([0.4, 0.2, -0.3]))
def robot_arm_homogeneous(angles):
    pose = np.eye(3)
    for a in angles:
        c, s = math.cos(a), math.sin(a)
        pose = pose @ np.array([[c, -s, c], [s, c, s], [0, 0, 1]])
    return pose[0, 2] * pose[1, 2]


@TEXTBOOK.at(np.array([0.0, 0.0, 1.0, 0.2, 0.3, 1.1]))
def three_body_energy(q):
    r = q.reshape(3, 2)
    energy = 0.0
    for i in range(3):
        for j in range(i):
            energy -= 1 / np.sqrt(np.sum((r[i] - r[j]) ** 2))
    return energy


@TEXTBOOK.at(np.array([0.1, 1.2, 2.5]))
def lennard_jones_pdist(x):
    d = scipy.spatial.distance.pdist(x[:, None])
    return np.sum(4 * (d**-12 - d**-6))


@TEXTBOOK.at(0.5, 0.3)
def ising_partition_function(beta, field):
    total = 0
    for state in range(2**4):
        spins = [1 if state >> k & 1 else -1 for k in range(4)]
        energy = -sum(spins[k] * spins[(k + 1) % 4] for k in range(4)) - field * sum(spins)
        total += np.exp(-beta * energy)
    return np.log(total)


@TEXTBOOK.at(0.5, 0.3)
def ising_transfer_matrix(beta, field):
    t = np.array([[np.exp(beta * (1 + field)), np.exp(-beta)], [np.exp(-beta), np.exp(beta * (1 - field))]])
    return np.log(np.trace(np.linalg.matrix_power(t, 4)))


@TEXTBOOK.at(0.3, 0.6)
def optics_ray_matrices(f, d):
    lens = np.matrix([[1, 0], [-1 / f, 1]])
    space = np.matrix([[1, d], [0, 1]])
    return (space * lens)[0, 1] + (lens * space * lens)[1, 0]


@TEXTBOOK.at(0.4)
def pendulum_period(amplitude):
    return 4 * scipy.special.ellipk(math.sin(amplitude / 2) ** 2)


@TEXTBOOK.at(1.4)
def planck_radiance(temperature):
    return scipy.integrate.quad(lambda x: x**3 / np.expm1(x / temperature), 1e-6, 20)[0]


@TEXTBOOK.at(2.0, 0.5)
def pid_controller(kp, ki):
    position, integral, log = 0.0, 0.0, []
    for _ in range(30):
        error = 1.0 - position
        integral += error * 0.05
        position += 0.05 * (kp * error + ki * integral - 0.5 * position)
        log.append(error**2)
    return sum(log) * 0.05


@TEXTBOOK.at(0.3, 1.2)
def resonance_impedance(resistance, inductance):
    w = 1.7
    z = resistance + 1j * w * inductance + 1 / (1j * w * 0.4)
    return abs(1 / z)


@TEXTBOOK.at(np.array([0.02, 0.03, 0.01, 0.04]))
def truss_of_areas(areas):
    angles = np.array([0.3, 1.0, 1.8, 2.5])
    k = np.zeros((2, 2))
    for area, angle in zip(areas, angles):
        c, s = np.cos(angle), np.sin(angle)
        k += area * np.array([[c * c, c * s], [c * s, s * s]])
    return np.linalg.solve(k, np.array([0.1, 0.2]))[1]


@TEXTBOOK.at(100.0, 0.2, 1.5, 0.03)
def black_scholes_erf(s, sigma, t, r):
    d1 = (math.log(s / 95) + (r + sigma**2 / 2) * t) / (sigma * math.sqrt(t))
    d2 = d1 - sigma * math.sqrt(t)
    cdf = lambda x: 0.5 * (1 + math.erf(x / math.sqrt(2)))
    return s * cdf(d1) - 95 * math.exp(-r * t) * cdf(d2)


@TEXTBOOK.at(100.0, 0.2, 1.5, 0.03)
def black_scholes_norm_cdf(s, sigma, t, r):
    d1 = (np.log(s / 95) + (r + sigma**2 / 2) * t) / (sigma * np.sqrt(t))
    d2 = d1 - sigma * np.sqrt(t)
    return s * scipy.stats.norm.cdf(d1) - 95 * np.exp(-r * t) * scipy.stats.norm.cdf(d2)


@TEXTBOOK.at(12.0)
def implied_volatility(price):
    def call(sigma):
        d1 = (np.log(100 / 95) + (0.03 + sigma**2 / 2)) / sigma
        return 100 * scipy.special.ndtr(d1) - 95 * np.exp(-0.03) * scipy.special.ndtr(d1 - sigma)

    return scipy.optimize.brentq(lambda s: call(s) - price, 0.01, 2, xtol=1e-14)


@TEXTBOOK.at(100.0, 0.25)
def binomial_tree(s, sigma):
    n, r = 12, 0.02
    u = np.exp(sigma * np.sqrt(1 / n))
    p = (np.exp(r / n) - 1 / u) / (u - 1 / u)
    v = np.zeros(n + 1)
    for i in range(n + 1):
        v[i] = max(102 - s * u ** (2 * i - n), 0)
    for _ in range(n):
        v = np.exp(-r / n) * (p * v[1:] + (1 - p) * v[:-1])
    return v[0]


@TEXTBOOK.at(100.0, 0.25)
def monte_carlo_option(s, sigma):
    np.random.seed(1)
    z = np.random.randn(50, 4)
    paths = s * np.exp(np.cumsum(-0.5 * sigma**2 / 4 + sigma * 0.5 * z, axis=1))
    return np.mean(np.maximum(paths.mean(axis=1) - 97.123, 0))


@TEXTBOOK.at(np.array([0.2, 0.3, 0.5]))
def portfolio_volatility(w):
    cov = np.array([[0.04, 0.01, 0.0], [0.01, 0.09, 0.02], [0.0, 0.02, 0.16]])
    return np.sqrt(w @ cov @ w)


@TEXTBOOK.at(0.05)
def bond_price_loop(y):
    price = 0
    for t in range(1, 11):
        price += 4 / (1 + y) ** t
    return price + 100 / (1 + y) ** 10


@TEXTBOOK.at(np.array([-10.0, 3.0, 4.0, 5.0]))
def internal_rate_of_return(flows):
    rate = 0.1
    for _ in range(50):
        npv = sum(c / (1 + rate) ** t for t, c in enumerate(flows))
        slope = sum(-t * c / (1 + rate) ** (t + 1) for t, c in enumerate(flows))
        step = npv / slope
        rate = rate - step
        if abs(step) < 1e-14:
            break
    return rate


@TEXTBOOK.at(0.04, 200.0)
def mortgage_balance(rate, payment):
    balances = np.zeros(13)
    balances[0] = 1000.0
    for month in range(12):
        balances[month + 1] = balances[month] * (1 + rate / 12) - payment / 12
    return balances[-1]


@TEXTBOOK.at(np.array([0.02, 0.025, 0.03]))
def bootstrapped_discount_curve(par):
    discount = np.zeros(3)
    for i in range(3):
        discount[i] = (1 - par[i] * np.sum(discount[:i])) / (1 + par[i])
    return -np.log(discount[-1]) / 3

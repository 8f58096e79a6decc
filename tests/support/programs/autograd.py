"""Programs like the examples of HIPS/autograd, rewritten with NumPy and SciPy as the only imports."""

import numpy as np
import scipy.linalg
import scipy.optimize
from scipy.integrate import odeint
from scipy.signal import convolve
from scipy.special import expit, gammaln, logsumexp
from scipy.stats import multivariate_normal as mvn
from scipy.stats import norm

import autodiff as ad
from tests.support.programs.program import Corpus

AUTOGRAD = Corpus()
RNG = np.random.default_rng(0)
INPUTS = RNG.normal(size=(6, 2))
TARGETS = np.array([0.2, 1.0, 0.4, -0.5, 0.9, 0.1])
SEQUENCE = RNG.normal(size=(5, 2))
NOISE = RNG.normal(size=(7, 3))
IMAGE = RNG.uniform(size=(5, 5))


@AUTOGRAD.at(0.7)
def tanh_by_hand(x):
    return (1.0 - np.exp(-2 * x)) / (1.0 + np.exp(-2 * x))


@AUTOGRAD.at(0.7)
def sinusoid_by_taylor(x):
    term = ans = x
    for i in range(0, 20):
        term = -term * x * x / ((2 * i + 3) * (2 * i + 2))
        ans = ans + term
        if np.abs(term) < 1e-12:
            break
    return ans


@AUTOGRAD.at(np.array([0.4, -0.3]))
def logistic_regression_of_predictions(weights):
    predictions = 0.5 * (np.tanh(np.dot(INPUTS, weights)) + 1)
    labels = np.array([True, True, False, True, False, False])
    probabilities = predictions * labels + (1 - predictions) * (1 - labels)
    return -np.sum(np.log(probabilities))


@AUTOGRAD.at(np.array([-1.2, 1.0, 0.7]))
def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2.0) ** 2.0 + (1 - x[:-1]) ** 2.0)


@AUTOGRAD.at(np.array([0.5, 0.3]))
def rosenbrock_minimized_with_gradient(scale):
    def f(x):
        return (x[1] - x[0] ** 2) ** 2 + scale[0] * (1 - x[0]) ** 2 + scale[1] * x[1] ** 2

    result = scipy.optimize.minimize(f, np.array([0.5, 0.5]), jac=ad.grad(f), method="BFGS", tol=1e-10)
    return result.fun


def unpacked(params, sizes):
    for m, n in zip(sizes[:-1], sizes[1:]):
        yield params[: m * n].reshape((m, n)), params[m * n : m * n + n].reshape((1, n))
        params = params[(m + 1) * n :]


@AUTOGRAD.at(0.4 * RNG.normal(size=13))
def neural_net_regression(params):
    inputs = INPUTS
    for w, b in unpacked(params, [2, 3, 1]):
        outputs = np.dot(inputs, w) + b
        inputs = np.tanh(outputs)
    return np.mean((TARGETS[:, None] - outputs) ** 2) + 0.01 * np.dot(params, params)


@AUTOGRAD.at(0.4 * RNG.normal(size=21))
def neural_net_classification(params):
    inputs, labels = INPUTS, np.eye(3)[[0, 1, 2, 0, 1, 2]]
    for w, b in unpacked(params, [2, 3, 3]):
        outputs = np.dot(inputs, w) + b
        inputs = np.tanh(outputs)
    normalised = outputs - logsumexp(outputs, axis=1, keepdims=True)
    log_prior = np.sum(norm.logpdf(params, 0, 1))
    return -np.sum(normalised * labels) - log_prior


@AUTOGRAD.at(np.concatenate([0.3 * RNG.normal(size=13), -2 * np.ones(13)]))
def bayesian_neural_net(params):
    mean, log_std = params[:13], params[13:]
    rs = np.random.RandomState(0)
    samples = rs.randn(3, 13) * np.exp(log_std) + mean
    total = 0.0
    for sample in samples:
        inputs = INPUTS
        for w, b in unpacked(sample, [2, 3, 1]):
            outputs = inputs @ w + b
            inputs = np.sin(outputs)
        total = total + np.sum(norm.logpdf(outputs[:, 0], TARGETS, 0.1)) + np.sum(norm.logpdf(sample, 0, 1))
    entropy = 0.5 * 13 * (1.0 + np.log(2 * np.pi)) + np.sum(log_std)
    return -(entropy + total / 3)


@AUTOGRAD.at(np.array([0.1, -0.2, 0.3, -1.0, -0.5, -0.8]))
def black_box_svi(params):
    mean, log_std = params[:3], params[3:]
    samples = NOISE * np.exp(log_std) + mean
    log_density = mvn.logpdf(samples, np.ones(3), np.diag([1.0, 2.0, 0.5])) + norm.logpdf(samples[:, 0], 0, 1.35)
    entropy = 0.5 * 3 * (1.0 + np.log(2 * np.pi)) + np.sum(log_std)
    return -(entropy + np.mean(log_density))


@AUTOGRAD.at(np.array([0.1, -0.2, -1.0, -0.5]))
def natural_gradient_svi(params):
    mean, log_std = params[:2], params[2:]
    samples = NOISE[:, :2] * np.exp(log_std) + mean
    funnel = norm.logpdf(samples[:, 0], 0, np.exp(samples[:, 1] / 2)) + norm.logpdf(samples[:, 1], 0, 1.35)
    return -np.mean(funnel) - np.sum(log_std)


@AUTOGRAD.at(np.array([0.3, -0.5, 0.2, 0.7, -0.6, 1.1, 0.1, -0.4]))
def gaussian_mixture_flat_parameters(params):
    log_proportions, means, log_scales = params[:2], params[2:6].reshape(2, 2), params[6:]
    log_proportions = log_proportions - logsumexp(log_proportions)
    components = []
    for k in range(2):
        components.append(log_proportions[k] + mvn.logpdf(INPUTS, means[k], np.exp(log_scales[k]) * np.eye(2)))
    return -np.sum(logsumexp(np.vstack(components), axis=0))


@AUTOGRAD.at(np.array([0.3, -0.5, 0.2, 0.7, 0.6, 0.4]))
def gaussian_mixture_with_matrices(params):
    root = np.array([[np.exp(params[4]), 0.0], [params[5], 1.0]])
    cov = np.dot(root, root.T)
    logs = [mvn.logpdf(INPUTS, params[2 * k : 2 * k + 2], cov) for k in range(2)]
    return -np.sum(logsumexp(np.array(logs) + np.log(0.5), axis=0))


@AUTOGRAD.at(np.array([0.2, -0.1, 0.4, 0.3, -0.3]))
def mixture_variational_inference(params):
    log_weights, means, log_std = params[:2] - logsumexp(params[:2]), params[2:4], params[4]
    total = 0
    for k in range(2):
        samples = means[k] + np.exp(log_std) * NOISE[:, 0]
        components = [log_weights[j] + norm.logpdf(samples, means[j], np.exp(log_std)) for j in range(2)]
        log_q = logsumexp(np.stack(components), axis=0)
        total = total + np.exp(log_weights[k]) * np.mean(-(samples**4) / 4 + samples**2 - log_q)
    return -total


def rbf(params, x, y):
    scale, lengths = np.exp(params[0]), np.exp(params[1:])
    diffs = np.expand_dims(x / lengths, 1) - np.expand_dims(y / lengths, 0)
    return scale * np.exp(-0.5 * np.sum(diffs**2, axis=2))


@AUTOGRAD.at(np.array([0.1, 0.2, -0.3, -1.0]))
def gaussian_process_solve(params):
    cov = rbf(params[:3], INPUTS, INPUTS) + np.exp(params[3]) * np.eye(6)
    return -mvn.logpdf(TARGETS, np.zeros(6), cov)


@AUTOGRAD.at(np.array([0.1, 0.2, -0.3, -1.0]))
def gaussian_process_cho_solve(params):
    cov = rbf(params[:3], INPUTS, INPUTS) + np.exp(params[3]) * np.eye(6)
    factor = scipy.linalg.cho_factor(cov, lower=True)
    log_det = 2 * np.sum(np.log(np.diag(factor[0])))
    return 0.5 * (TARGETS @ scipy.linalg.cho_solve(factor, TARGETS) + log_det + 6 * np.log(2 * np.pi))


@AUTOGRAD.at(np.array([0.1, 0.2, -0.3, -1.0]))
def gaussian_process_prediction(params):
    cov = rbf(params[:3], INPUTS, INPUTS) + np.exp(params[3]) * np.eye(6)
    cross = rbf(params[:3], INPUTS, np.array([[0.3, 0.1], [0.9, -0.4]]))
    mean = np.dot(cross.T, np.linalg.solve(cov, TARGETS))
    variance = rbf(params[:3], np.zeros((1, 2)), np.zeros((1, 2))) - np.diag(cross.T @ np.linalg.solve(cov, cross))
    return np.sum(mean) + np.sum(np.sqrt(variance))


@AUTOGRAD.at(np.array([0.1, 0.2, -0.5, 0.3, -0.3, 0.5, 0.6, -0.4, 0.2, 0.1]))
def deep_gaussian_process(params):
    hidden = params[4:].reshape(6, 1)
    first = rbf(np.array([params[0], params[1], params[1]]), INPUTS, INPUTS) + 0.1 * np.eye(6)
    second = rbf(params[2:4], hidden, hidden) + 0.1 * np.eye(6)
    return -mvn.logpdf(hidden[:, 0], np.zeros(6), first) - mvn.logpdf(TARGETS, np.zeros(6), second)


@AUTOGRAD.at(np.array([0.1, 0.3, 0.4, -0.7, 0.2, 0.9, -0.2, 0.5]))
def latent_variable_gaussian_process(params):
    latents = np.reshape(params[2:], (6, 1))
    chol = np.linalg.cholesky(rbf(params[:2], latents, latents) + 0.2 * np.eye(6))
    alpha = np.linalg.solve(chol, SEQUENCE[0, 0] * TARGETS)
    return 0.5 * np.sum(alpha**2) + np.sum(np.log(np.diag(chol))) + 0.5 * np.sum(latents**2)


@AUTOGRAD.at(0.4 * RNG.normal(size=17))
def recurrent_net(params):
    init, change, predict = params[:2], params[2:12].reshape(5, 2), params[12:].reshape(5, 1)[:3]
    hidden = np.repeat(init[None, :], 1, axis=0)
    outputs = []
    for step in SEQUENCE:
        joined = np.hstack((step[None, :], hidden, np.ones((1, 1))))
        hidden = np.tanh(np.dot(joined, change))
        outputs.append(np.dot(np.concatenate((hidden, np.ones((1, 1))), axis=1), predict))
    return np.sum(np.array(outputs) ** 2)


@AUTOGRAD.at(0.4 * RNG.normal(size=44))
def long_short_term_memory(params):
    def sigmoid(x):
        return 0.5 * (np.tanh(x) + 1.0)

    gates = params[:40].reshape(4, 5, 2)
    cells, hidden = params[40:42][None, :], params[42:44][None, :]
    total = 0.0
    for step in SEQUENCE:
        joined = np.hstack([step.reshape(1, 2), hidden, np.ones((1, 1))])
        change = np.tanh(joined @ gates[0])
        forget, ingate, outgate = (sigmoid(np.dot(joined, g)) for g in gates[1:])
        cells = cells * forget + ingate * change
        hidden = outgate * np.tanh(cells)
        total = total + logsumexp(hidden) - hidden[0, 1]
    return total


@AUTOGRAD.at(0.4 * RNG.normal(size=12))
def ode_net(params):
    w1, w2 = params[:6].reshape(2, 3), params[6:].reshape(3, 2)

    def change(y, t, w1, w2):
        return np.dot(np.tanh(np.dot(y**3, w1)), w2)

    predicted = odeint(change, np.array([1.0, 0.3]), np.linspace(0, 1, 4), args=(w1, w2), rtol=1e-11, atol=1e-12)
    return np.mean(np.abs(predicted - 0.2))


@AUTOGRAD.at(0.5 * RNG.normal(size=13))
def convnet_by_loops(params):
    kernel, dense = params[:4].reshape(2, 2), params[4:].reshape(3, 3)
    rows = []
    for i in range(4):
        rows.append([np.sum(IMAGE[i : i + 2, j : j + 2] * kernel) for j in range(4)])
    activated = np.tanh(np.array(rows))
    pooled = np.max(activated[:2, :2]) + np.max(activated[2:, 2:])
    return logsumexp(dense @ activated[:3, 0]) * pooled


@AUTOGRAD.at(0.5 * RNG.normal(size=(2, 2)))
def convnet_by_scipy_convolve(kernel):
    return np.sum(np.tanh(convolve(IMAGE, kernel, mode="valid")))


@AUTOGRAD.at(0.5 * RNG.normal(size=8))
def generative_adversarial_net(params):
    generator, discriminator = params[:4].reshape(2, 2), params[4:].reshape(4, 1)
    fakes = np.maximum(NOISE[:, :2] @ generator, 0) + 0.1
    judge = lambda x: np.concatenate([x, x**2], axis=1) @ discriminator
    return np.mean(-np.log(expit(judge(fakes)))) + np.mean(np.logaddexp(0, judge(INPUTS)))


@AUTOGRAD.at(0.4 * RNG.normal(size=14))
def variational_autoencoder(params):
    encoder, decoder = params[:8].reshape(2, 4), params[8:12].reshape(2, 2)
    codes = INPUTS @ encoder
    mean, log_std = codes[:, :2], codes[:, 2:]
    latents = mean + np.exp(log_std) * NOISE[:6, :2]
    logits = latents @ decoder + params[12:]
    binary = (INPUTS > 0) * 2 - 1
    likelihood = np.sum(-np.logaddexp(0, -logits * binary))
    kl = np.sum(norm.logpdf(latents, mean, np.exp(log_std)) - norm.logpdf(latents))
    return -(likelihood - kl) / 6


@AUTOGRAD.at(0.5 * RNG.normal(size=6))
def hmm_expectation_maximisation(params):
    transition = params[:4].reshape(2, 2)
    transition = transition - logsumexp(transition, axis=1, keepdims=True)
    means = params[4:]
    alpha = np.log(0.5) + norm.logpdf(TARGETS[0], means, 0.5)
    for y in TARGETS[1:]:
        alpha = logsumexp(alpha[:, None] + transition, axis=0) + norm.logpdf(y, means, 0.5)
    return logsumexp(alpha)


@AUTOGRAD.at(0.5 * RNG.normal(size=(2, 2)) + np.eye(2))
def independent_components(unmix):
    sources = INPUTS @ unmix
    return np.sum(np.log(np.cosh(sources))) - len(INPUTS) * np.linalg.slogdet(unmix)[1]


@AUTOGRAD.at(np.array([0.4, 0.9]))
def negative_binomial_likelihood(params):
    r, p = np.exp(params[0]), expit(params[1])
    counts = np.array([1, 4, 2, 0, 3])
    return -np.sum(gammaln(counts + r) - gammaln(r) - gammaln(counts + 1) + counts * np.log(p) + r * np.log1p(-p))


@AUTOGRAD.at(np.array([0.3, -0.2, 0.5, 0.1, 0.7, 0.9]))
def kernel_space_function(alphas):
    kernel = np.exp(-np.square(INPUTS[:, 0][:, None] - INPUTS[:, 0]))
    return np.sum((kernel @ alphas - TARGETS) ** 2) + 0.1 * alphas @ kernel @ alphas


def advected(field, u, v):
    rows, cols = field.shape
    ys, xs = np.meshgrid(np.arange(rows), np.arange(cols), indexing="ij")
    x, y = (xs - u).ravel(), (ys - v).ravel()
    left, top = np.floor(x).astype(int), np.floor(y).astype(int)
    right, bottom = x - left, y - top
    flat = (1 - right) * ((1 - bottom) * field[top % rows, left % cols] + bottom * field[(top + 1) % rows, left % cols])
    flat = flat + right * (
        (1 - bottom) * field[top % rows, (left + 1) % cols] + bottom * field[(top + 1) % rows, (left + 1) % cols]
    )
    return np.reshape(flat, (rows, cols))


@AUTOGRAD.at(0.3 * RNG.normal(size=(2, 3, 3)))
def fluid_simulation(velocities):
    u, v = velocities
    smoke = IMAGE[:3, :3]
    for _ in range(3):
        divergence = 0.5 * (np.roll(u, -1, axis=1) - np.roll(u, 1, axis=1) + np.roll(v, -1, axis=0) - np.roll(v, 1, axis=0))
        pressure = np.zeros(divergence.shape)
        for _ in range(4):
            pressure = (
                np.roll(pressure, 1, 0) + np.roll(pressure, -1, 0) + np.roll(pressure, 1, 1) + np.roll(pressure, -1, 1)
            ) / 4 - divergence / 4
        u = u - 0.5 * (np.roll(pressure, -1, axis=1) - np.roll(pressure, 1, axis=1))
        v = v - 0.5 * (np.roll(pressure, -1, axis=0) - np.roll(pressure, 1, axis=0))
        smoke = advected(smoke, u, v)
    return np.mean((smoke - 0.3) ** 2)


@AUTOGRAD.at(0.3 * RNG.normal(size=(3, 4)))
def wing_in_wind_tunnel(params):
    occlusion = expit(params)
    u, v = np.ones((3, 4)), np.zeros((3, 4))
    for _ in range(3):
        u = (u - 0.1 * u * (u - np.roll(u, 1, axis=1))) * (1 - occlusion)
        v = v + 0.1 * (np.roll(u, 1, axis=0) - u)
        v[0, :] = 0.0
    drag = np.mean(np.abs(1.0 - u))
    return np.mean(v**2) / drag


@AUTOGRAD.at(2.0)
def fixed_point_square_root(a):
    old, new = 1.0, 0.5 * (1.0 + a)
    while np.abs(new - old) > 1e-12:
        old, new = new, 0.5 * (new + a / new)
    return new


@AUTOGRAD.at(np.array([0.3, 0.2]))
def hyperparameters_of_unrolled_training(hyper):
    loss = lambda w, penalty: np.mean((INPUTS @ w - TARGETS) ** 2) + penalty * np.sum(w**2)
    w = np.zeros(2)
    for _ in range(5):
        w = w - hyper[0] * ad.grad(loss)(w, hyper[1])
    return np.mean((INPUTS @ w - TARGETS) ** 2)


@AUTOGRAD.at(np.array([0.3, 0.6]))
def probability_of_improvement(x):
    data = np.array([0.1, 0.5, 0.9])
    k = np.exp(-((data[:, None] - data) ** 2)) + 0.1 * np.eye(3)
    cross = np.exp(-((x[:, None] - data) ** 2))
    mean = cross @ np.linalg.solve(k, np.array([0.2, 0.8, 0.5]))
    std = np.sqrt(1.1 - np.sum(cross * np.linalg.solve(k, cross.T).T, axis=1))
    z = (mean - 0.6) / std
    return -np.sum(norm.logcdf(z))


@AUTOGRAD.at(np.array([0.3, 0.6]), 1.5)
def graph_to_be_drawn(x, y):
    return np.sum(np.sin(x) * y + np.dot(x, x) / (1 + y**2))


@AUTOGRAD.at(0.7)
def trace_to_be_printed(x):
    log = []
    for i in range(3):
        x = np.sin(x) + i
        log.append(f"{i}: {x}")
    return x * len(log)

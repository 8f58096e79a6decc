"""Textbook programs: features of Python and NumPy around the arithmetic, as commonly used."""

import array
import cmath
import collections
import copy
import ctypes
import functools
import hashlib
import heapq
import io
import itertools
import json
import math
import operator
import pickle
import random
import statistics
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from tests.support.programs.textbook_data import TEXTBOOK

V = np.array([0.6, 1.1, 1.7])


@TEXTBOOK.at(V)
def asarray_first(x):
    x = np.asarray(x, dtype=float)
    return np.sum(np.sin(x) * x)


@TEXTBOOK.at(V)
def array_copy_first(x):
    x = np.array(x)
    x[0] = 2 * x[1]
    return np.sum(x**2)


@TEXTBOOK.at(V)
def ascontiguousarray_and_astype(x):
    return np.sum(np.ascontiguousarray(x).astype(float) ** 3)


@TEXTBOOK.at(1.3)
def atleast_1d_first(x):
    x = np.atleast_1d(x)
    return np.sum(x**3)


@TEXTBOOK.at(1.3, 0.4)
def array_of_two_scalars(a, b):
    v = np.array([a, b])
    return np.sqrt(v.dot(v))


@TEXTBOOK.at(1.3, 0.4)
def array_with_dtype(a, b):
    m = np.array([[a, b], [b, 1]], dtype=np.float64)
    return np.linalg.det(m)


@TEXTBOOK.at(V)
def float_cast(x):
    return float(x[0]) * x[1]


@TEXTBOOK.at(V)
def float_of_sum(x):
    return float(np.sum(x**2)) + np.sum(x)


@TEXTBOOK.at(V)
def item_and_tolist(x):
    values = x.tolist()
    return x[0] * values[1] + x[2].item() ** 2


@TEXTBOOK.at(0.7)
def math_functions(x):
    return math.sin(x) + math.exp(-x) * math.sqrt(x)


@TEXTBOOK.at(V)
def math_beside_numpy(x):
    total = 0
    for v in x:
        total += np.cos(v) * math.log(v)
    return total


@TEXTBOOK.at(0.3, 0.4)
def math_hypot_and_atan2(x, y):
    return math.hypot(x, y) * math.atan2(y, x)


@TEXTBOOK.at(V)
def math_fsum_and_prod(x):
    return math.fsum(x * x) + math.prod(x)


@TEXTBOOK.at(V)
def math_dist(x):
    return math.dist(x, [0.0, 0.5, 1.0])


@TEXTBOOK.at(0.7)
def cmath_phase(x):
    return cmath.exp(1j * x).real + abs(cmath.sqrt(x - 2j))


@TEXTBOOK.at(0.3, 0.4)
def complex_of_parts(a, b):
    z = complex(a, b)
    return abs(z * z + 1)


@TEXTBOOK.at(V)
def statistics_module(x):
    return statistics.fmean(x) ** 2 + statistics.pstdev([float(v) for v in x])


@TEXTBOOK.at(V)
def complex_buffer(x):
    z = np.zeros(3, dtype=complex)
    z[:] = x
    return np.sum(np.abs(np.exp(1j * z) + z))


@TEXTBOOK.at(V)
def buffer_real_and_imag(x):
    z = np.zeros(3, dtype=complex)
    z.real = x
    z.imag = 2 * x
    return np.sum(np.abs(z) ** 2)


@TEXTBOOK.at(V)
def buffer_whole_slice(x):
    buffer = np.zeros(3)
    buffer[:] = x
    return np.sum(buffer**2)


@TEXTBOOK.at(V)
def buffer_ellipsis_and_mask(x):
    buffer = np.ones((2, 3))
    buffer[0, ...] = x
    buffer[buffer > 1.05] *= 3
    return np.sum(buffer**2)


@TEXTBOOK.at(V)
def buffer_of_list(x):
    buffer = np.zeros(3)
    buffer[:2] = [x[0], x[1] * x[2]]
    return np.sum(buffer)


@TEXTBOOK.at(V)
def buffer_fancy_index(x):
    buffer = np.zeros(5)
    buffer[[4, 0, 2]] = x
    return np.sum(buffer * np.arange(5))


@TEXTBOOK.at(V)
def buffer_flat_and_transpose(x):
    buffer = np.zeros((3, 2))
    buffer.flat[:3] = x
    buffer.T[1] = x
    return np.sum(buffer * np.arange(6).reshape(3, 2))


@TEXTBOOK.at(V)
def buffer_fill_diagonal(x):
    m = np.ones((3, 3))
    np.fill_diagonal(m, 1 + x)
    return np.linalg.det(m)


@TEXTBOOK.at(V)
def buffer_put_place_copyto(x):
    a, b, c = np.zeros(3), np.zeros(3), np.zeros(3)
    np.put(a, [2, 0, 1], x)
    np.place(b, [True, False, True], x)
    np.copyto(c, x)
    return np.sum(a * [1, 2, 3] + b**2 + c**3)


@TEXTBOOK.at(V)
def buffer_add_at(x):
    counts = np.zeros(2)
    np.add.at(counts, [0, 1, 0], x)
    return np.sum(counts**2)


@TEXTBOOK.at(V)
def buffer_out_argument(x):
    out = np.empty(3)
    np.multiply(x, x, out=out)
    np.add(out, x, out)
    return np.sum(out)


@TEXTBOOK.at(V)
def buffer_augmented(x):
    total = np.zeros(3)
    for _ in range(3):
        total += x * total + x
    return np.sum(total)


@TEXTBOOK.at(V)
def buffer_longdouble(x):
    buffer = np.zeros(3, dtype=np.longdouble)
    for i in range(3):
        buffer[i] = x[i] ** 2
    return np.sum(buffer).astype(float)


@TEXTBOOK.at(V)
def buffer_of_objects(x):
    buffer = np.empty(3, dtype=object)
    for i in range(3):
        buffer[i] = x[i]
    return np.sum(buffer * buffer)


@TEXTBOOK.at(V)
def argument_written_into(x):
    x[0] = x[1] * x[2]
    x[1:] += 1
    return np.sum(x**2)


@TEXTBOOK.at(V)
def sorted_and_extremes(x):
    ordered = sorted(x, reverse=True)
    return ordered[0] * 2 + ordered[1] + max(x) * min(x)


@TEXTBOOK.at(V)
def sort_in_place(x):
    x = x.copy()
    x.sort()
    return np.sum(x * np.arange(3))


@TEXTBOOK.at(V)
def heap_of_values(x):
    heap = list(x)
    heapq.heapify(heap)
    return heapq.heappop(heap) * 3 + heap[0]


@TEXTBOOK.at(V)
def deque_and_accumulate(x):
    window = collections.deque(maxlen=2)
    total = 0
    for running in itertools.accumulate(x):
        window.append(running)
        total += sum(window) ** 2
    return total


@TEXTBOOK.at(V)
def reduce_and_map(x):
    return functools.reduce(operator.mul, map(lambda v: v + 1, x))


@TEXTBOOK.at(V)
def counter_as_sums(x):
    sums = collections.defaultdict(float)
    for key, v in zip("aba", x):
        sums[key] += v
    return sums["a"] * sums["b"]


@TEXTBOOK.at(V)
def vectorize_scalar_function(x):
    f = np.vectorize(lambda v: v**2 if v > 1 else np.sin(v))
    return np.sum(f(x))


@TEXTBOOK.at(V)
def vectorize_math_function(x):
    f = np.vectorize(math.gamma, otypes=[float])
    return np.sum(f(x))


@TEXTBOOK.at(V)
def frompyfunc_of_math(x):
    f = np.frompyfunc(lambda v: math.tanh(v) * v, 1, 1)
    return np.sum(f(x)).astype(float) if hasattr(np.sum(f(x)), "astype") else np.sum(f(x))


@TEXTBOOK.at(V)
def fromiter_generator(x):
    return np.sum(np.fromiter((v * v for v in x), dtype=float))


@TEXTBOOK.at(V)
def apply_along_axis(x):
    return np.sum(np.apply_along_axis(lambda row: row[0] * row[1], 1, np.outer(x, x)))


@TEXTBOOK.at(V)
def nditer_and_ndenumerate(x):
    total = 0
    for v in np.nditer(x):
        total = total + v**2
    for (i,), v in np.ndenumerate(x):
        total = total + i * v
    return total


@TEXTBOOK.at(V)
def sliding_windows(x):
    windows = np.lib.stride_tricks.sliding_window_view(x, 2)
    return np.sum(windows.prod(axis=1))


@TEXTBOOK.at(V)
def as_strided_windows(x):
    windows = np.lib.stride_tricks.as_strided(x, shape=(2, 2), strides=(x.strides[0], x.strides[0]))
    return np.sum(windows[:, 0] * windows[:, 1])


@TEXTBOOK.at(V)
def data_from_text(x):
    data = np.loadtxt(io.StringIO("1 2 3\n4 5 6"))
    return np.sum(np.tanh(data @ x))


@TEXTBOOK.at(V)
def saved_as_text_and_loaded(x):
    f = io.StringIO()
    np.savetxt(f, x, fmt="%.18e")
    f.seek(0)
    return np.sum(np.loadtxt(f) ** 2)


@TEXTBOOK.at(V)
def saved_and_loaded(x):
    f = io.BytesIO()
    np.save(f, x)
    f.seek(0)
    return np.sum(np.load(f) ** 2)


@TEXTBOOK.at(V)
def json_round_trip(x):
    parameters = json.loads(json.dumps({"w": x.tolist()}))
    return np.sum(np.array(parameters["w"]) ** 2)


@TEXTBOOK.at(V)
def pickle_round_trip(x):
    return np.sum(pickle.loads(pickle.dumps(x)) ** 2)


@TEXTBOOK.at(V)
def deepcopied_parameters(x):
    parameters = {"w": x[:2], "b": x[2]}
    moved = copy.deepcopy(parameters)
    moved["w"] = moved["w"] * 2
    return np.sum(moved["w"] * parameters["w"]) + moved["b"] ** 2


@TEXTBOOK.at(V)
def packed_with_struct(x):
    a, b, c = struct.unpack("3d", struct.pack("3d", *x))
    return a * b + c


@TEXTBOOK.at(V)
def array_module(x):
    values = array.array("d", x)
    return sum(v * v for v in values)


@TEXTBOOK.at(V)
def memoryview_of_argument(x):
    m = memoryview(x)
    return m[0] * x[1] + m[2] ** 2


@TEXTBOOK.at(V)
def frombuffer_of_bytes(x):
    return np.sum(np.frombuffer(x.tobytes()) ** 2)


@TEXTBOOK.at(V)
def ctypes_pointer(x):
    pointer = x.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
    return pointer[0] * x[1] + pointer[2]


CACHE = {}


@TEXTBOOK.at(V)
def cached_by_hash(x):
    key = hashlib.sha256(x.tobytes()).hexdigest()
    if key not in CACHE:
        CACHE.clear()
        CACHE[key] = len(key)
    return np.sum(x**2) / CACHE[key]


@TEXTBOOK.at(0.7)
def lru_cached_of_argument(x):
    @functools.lru_cache
    def f(v, n):
        return v**n + 1

    return f(x, 2) * f(x, 3) * f(x, 2)


@TEXTBOOK.at(V)
def memo_dictionary_of_numbers(x):
    memo = {}

    def f(v):
        if v not in memo:
            memo[v] = v**2
        return memo[v]

    return f(x[0]) + f(x[1]) * f(x[0])


@TEXTBOOK.at(V)
def threads_fill_list(x):
    parts = [None] * 3

    def work(i):
        parts[i] = x[i] ** 2

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return sum(parts)


@TEXTBOOK.at(V)
def thread_pool_map(x):
    with ThreadPoolExecutor(2) as pool:
        return sum(pool.map(lambda v: v**3, x))


@TEXTBOOK.at(V)
def thread_fills_buffer(x):
    out = np.zeros(3)

    def work():
        out[:] = x * 2

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return np.sum(out)


@dataclass
class Spring:
    stiffness: float
    damping: float

    def energy(self, position, velocity):
        return 0.5 * self.stiffness * position**2 + self.damping * velocity


@TEXTBOOK.at(V)
def dataclass_of_parameters(x):
    return Spring(x[0], x[1]).energy(x[2], 0.3)


class Polynomial:
    def __init__(self, coefficients):
        self.coefficients = np.array(coefficients, dtype=float)

    def __call__(self, at):
        return sum(c * at**k for k, c in enumerate(self.coefficients))

    def __add__(self, other):
        return Polynomial(self.coefficients + other.coefficients)


@TEXTBOOK.at(V)
def class_of_coefficients(x):
    return (Polynomial(x) + Polynomial([1.0, 0.0, x[0]]))(1.5)


@TEXTBOOK.at(V)
def numpy_polynomial_class(x):
    return np.polynomial.Polynomial(x)(1.5) + np.poly1d(x)(0.5)


@TEXTBOOK.at(V)
def masked_array_mean(x):
    observed = np.ma.masked_array([1.0, -99.0, 2.0], mask=[0, 1, 0])
    return ((observed - x) ** 2).sum()


@TEXTBOOK.at(V)
def masked_array_of_argument(x):
    return np.ma.masked_greater(x, 1.5).mean()


@TEXTBOOK.at(V)
def matrix_class(x):
    m = np.matrix([[1.0, 2.0, 3.0], [0.0, 1.0, 2.0]])
    return np.sum(np.asarray(m * x[:, None]) ** 2)


@TEXTBOOK.at(V)
def structured_array(x):
    bodies = np.zeros(3, dtype=[("mass", float), ("speed", float)])
    bodies["mass"] = x
    bodies["speed"] = [1.0, 2.0, 3.0]
    return np.sum(0.5 * bodies["mass"] * bodies["speed"] ** 2)


@TEXTBOOK.at(V)
def record_array(x):
    r = np.rec.fromarrays([x, x**2], names="a,b")
    return np.sum(r.a * r.b)


@TEXTBOOK.at(V)
def printed_progress(x):
    loss = np.sum(x**2)
    log = io.StringIO()
    print(f"loss {loss:.3f}", "at", x, "%.2e" % x[0], str(x[1]), repr(loss), file=log)
    return loss * 2


@TEXTBOOK.at(2.0)
def isinstance_of_float(x):
    return x**2 if isinstance(x, float) else 0 * x


@TEXTBOOK.at(2.0)
def isscalar_branch(x):
    return x**2 if np.isscalar(x) else 0 * x


@TEXTBOOK.at(V)
def shapes_and_lengths(x):
    n = len(x)
    return np.sum(x.reshape(-1, 1) * np.ones((x.size, n))) / x.shape[0] + x.ndim * x.mean()


@TEXTBOOK.at(V)
def condition_chain(x):
    if x[0] > 0 and np.all(x < 2):
        y = x[1] * x[2]
    elif np.any(x > 5):
        y = x[0]
    else:
        y = 0 * x[0]
    return y if y > 1 else -y


@TEXTBOOK.at(V)
def try_float_except(x):
    try:
        scale = float(x[0])
    except TypeError:
        scale = 1.0
    return scale * x[1]


@TEXTBOOK.at(V)
def random_noise_scaled(x):
    rng = np.random.default_rng(0)
    return np.sum(rng.normal(x, 0.1) ** 2)


@TEXTBOOK.at(0.5, 1.5)
def random_module(mu, sigma):
    random.seed(4)
    return sum(random.gauss(mu, sigma) ** 2 for _ in range(3))


@TEXTBOOK.at(V)
def reparametrised_sample(x):
    rng = np.random.default_rng(0)
    sample = x[0] + x[1] * rng.standard_normal(10)
    return np.mean(np.exp(-(sample**2) / x[2]))


@TEXTBOOK.at(V)
def histogram_weights(x):
    counts, _ = np.histogram([0.1, 0.5, 0.9], bins=2, range=(0, 1), weights=x)
    return np.sum(counts**2)


@TEXTBOOK.at(V)
def bincount_weights(x):
    return np.sum(np.bincount([0, 1, 0], weights=x) ** 2)


@TEXTBOOK.at(V)
def einsum_and_tensordot(x):
    m = np.einsum("i,j->ij", x, x)
    return np.tensordot(m, np.arange(9.0).reshape(3, 3), 2)


@TEXTBOOK.at(V)
def digitised_table(x):
    bins = np.digitize(x, [1.0, 1.5])
    return np.sum(np.array([1.0, 2.0, 3.0])[bins] * x)


@TEXTBOOK.at(V)
def choose_and_select(x):
    return np.sum(np.select([x < 1, x < 1.5], [x**2, x**3], np.sqrt(x)) + np.choose([0, 1, 0], [x, x * x]))


@TEXTBOOK.at(V)
def piecewise_function(x):
    return np.sum(np.piecewise(x, [x < 1, x >= 1], [lambda v: v**2, lambda v: np.exp(v)]))


@TEXTBOOK.at(V)
def stacking_and_block(x):
    m = np.block([[x[:2, None], np.ones((2, 1))], [np.zeros((1, 1)), x[2].reshape(1, 1)]])
    return np.linalg.norm(np.vstack([m, np.hstack([x[:1], x[1:2]])]))


@TEXTBOOK.at(V)
def meshgrid_and_ogrid(x):
    a, b = np.meshgrid(x, x)
    return np.sum(np.exp(-a * b))


@TEXTBOOK.at(V)
def r_and_c_builders(x):
    return np.sum(np.r_[x, 1.0, x[0]] ** 2) + np.sum(np.c_[x, x])


@TEXTBOOK.at(V)
def linspace_and_arange_of_argument(x):
    return np.sum(np.linspace(x[0], x[1], 5) ** 2) + np.sum(np.full(3, x[2]) ** 2)


@TEXTBOOK.at(V)
def percentile_and_median(x):
    return np.percentile(x, 30) + np.median(x) ** 2


@TEXTBOOK.at(V)
def game_of_moves(x):
    @functools.lru_cache(maxsize=None)
    def value(position):
        if position >= 5:
            return 0
        return max(x[move] - 0.3 * value(position + move + 1) for move in range(3))

    return value(0)


@TEXTBOOK.at(V)
def knapsack_table(x):
    weights, capacity = [1, 2, 3], 4
    best = np.zeros((4, capacity + 1))
    for i in range(1, 4):
        for w in range(capacity + 1):
            best[i, w] = best[i - 1, w]
            if weights[i - 1] <= w:
                best[i, w] = max(best[i, w], best[i - 1, w - weights[i - 1]] + x[i - 1])
    return best[3, capacity]


@TEXTBOOK.at(V)
def shortest_path_matrix(x):
    d = np.full((4, 4), np.inf)
    d[0, 1], d[1, 2], d[2, 3], d[0, 2] = x[0], x[1], x[2], 2.5
    for k in range(4):
        for i in range(4):
            for j in range(4):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]
    return d[0, 3]

"""Arrays as CuPy has them: NumPy's functions, no implicit conversion, results without axes instead of scalars."""

import copy
import pickle

import cupy as cp
import numpy as np


def refused(function, kind=TypeError, text=""):
    try:
        function()
    except kind as error:
        assert text in str(error), error  # noqa: PT017  a script, not a test
    else:
        raise AssertionError(f"{function} was not refused")


x = cp.arange(10, dtype=cp.float32).reshape(2, 5)
host = np.arange(10, dtype=np.float32).reshape(2, 5)
assert isinstance(x, cp.ndarray)
assert cp.get_array_module(x) is cp
assert cp.get_array_module(host) is np
assert x.dtype == np.float32
assert x.shape == (2, 5)
assert x.nbytes == 40
assert len(x) == 2
assert x.T.shape == (5, 2)
assert isinstance(x.get(), np.ndarray)
assert isinstance(cp.asnumpy(x), np.ndarray)

refused(lambda: np.asarray(x), text="Implicit conversion to a NumPy array is not allowed")
for mixed in (lambda: x + host, lambda: host + x, lambda: cp.add(x, host), lambda: np.add(x, host),
              lambda: x.__add__([1, 2]), lambda: cp.sin([1.0]), lambda: cp.sum(host), lambda: cp.where(host > 0, x, x),
              lambda: cp.concatenate([x, host])):  # fmt: skip
    refused(mixed, text="nsupported type")
refused(lambda: x.__setitem__(..., host), ValueError)
refused(lambda: x.set(host.astype(np.float64)))
refused(lambda: x.set(host[0]), ValueError)
refused(lambda: x.sum(initial=1), AttributeError, "'initial'")
refused(lambda: cp.add.reduce(x), AttributeError, "cupy.add.reduce")

# results stay on the device
assert isinstance(x.sum(), cp.ndarray)
assert x.sum().shape == ()
assert float(x.sum()) == 45
assert x.sum().item() == 45
assert isinstance(x[1, 2], cp.ndarray)
assert int(x[1, 2]) == 7
assert isinstance(np.sin(x), cp.ndarray)
assert isinstance(np.sum(x), cp.ndarray)
assert isinstance(cp.allclose(x, x), cp.ndarray)
assert cp.allclose(x, x)
assert [int(value) for value in x[0]] == [0, 1, 2, 3, 4]
assert ["a", "b"][cp.asarray([0, 1])[1]] == "b"

# arithmetic, in place and on views
y = 2 * x - x / 4 + x**2 % 3 // 1
np.testing.assert_allclose(y.get(), 2 * host - host / 4 + host**2 % 3 // 1)
view = x[:, 1:3]
view += 100
x[x > 105] = -1
x[0] = cp.asarray([9, 8, 7, 6, 5], dtype=cp.float32)
assert x.tolist() == [[9, 8, 7, 6, 5], [5, -1, -1, 8, 9]]
element = x[0, 0]
element[...] = 3
assert x[0, 0] == 3
assert (-x).min() == -9
assert abs(x).max() == 9
assert (x == 8).sum() == 2
assert ~(x > 0)[1, 1]
assert x[cp.asarray([1, 0])].tolist() == x[[1, 0]].tolist() == x[::-1].tolist()
assert divmod(cp.asarray(7), 4)[1] == 3
assert (x @ x.T).shape == (2, 2)
assert (1 - x)[0, 0] == -2

# copies
out = np.empty((2, 5), np.float32)
assert x.get(out=out) is out
assert out[0, 0] == 3
x.set(host)
np.testing.assert_array_equal(x.get(), host)
assert cp.asarray(x) is x
assert cp.array(x) is not x
assert x.copy() is not x
host[0, 0] = 50
assert x[0, 0] == 0
assert pickle.loads(pickle.dumps(x)).tolist() == copy.deepcopy(x).tolist() == x.tolist()
assert cp.asarray([x[0], x[1]]).shape == (2, 5)
assert str(x) == str(x.get())
assert f"{x.mean():.2f}" == "4.50"

# functions
assert cp.stack([x, x]).shape == (2, 2, 5)
assert cp.concatenate((x, x), axis=1).shape == (2, 10)
np.testing.assert_allclose(cp.linalg.norm(x).get(), np.linalg.norm(x.get()), rtol=1e-6)
np.testing.assert_allclose(cp.einsum("ij,kj->ik", x, x).get(), (x @ x.T).get())
assert cp.argmax(x) == 9
assert cp.unique(cp.asarray([3, 1, 3])).tolist() == [1, 3]
values, counts = cp.unique(cp.asarray([3, 1, 3]), return_counts=True)
assert counts.tolist() == [1, 2]
assert [part.shape for part in cp.split(x, 5, axis=1)] == [(2, 1)] * 5
assert cp.clip(x, 2, 4).max() == 4
assert cp.where(x > 4, x, 0).sum() == 35
assert cp.sqrt(x, out=x) is x
assert cp.zeros_like(x).sum() == 0
assert cp.ones((2, 2)).dtype == np.float64
assert cp.full(3, 7).tolist() == [7] * 3
assert cp.linspace(0, 1, 3).tolist() == [0, 0.5, 1]
assert cp.eye(2).tolist() == [[1, 0], [0, 1]]
cp.testing.assert_allclose(x, np.sqrt(np.arange(10).reshape(2, 5)), rtol=1e-6)
refused(lambda: cp.testing.assert_array_equal(x, x + 1), AssertionError)

# random numbers
cp.random.seed(3)
first = cp.random.rand(4, dtype=cp.float32)
cp.random.seed(3)
assert (first == cp.random.rand(4, dtype=cp.float32)).all()
assert first.dtype == np.float32
assert cp.random.randn(2, 3).shape == (2, 3)
assert cp.random.uniform(2, 3, (4,)).min() >= 2
assert cp.random.randint(0, 4, size=100).max() <= 3
assert cp.random.default_rng(1).random(3).shape == (3,)
assert cp.random.normal(size=(3,), dtype=cp.float32).dtype == np.float32
assert sorted(cp.random.permutation(5).tolist()) == [0, 1, 2, 3, 4]

# SPDX-License-Identifier: Apache-2.0
"""What multi-head attention computes, in float64: results, gradients, and the
sums of the magnitudes of the terms in each. A head of query t is the mean of
the values that t sees, weighted by the softmax of the products of t with their
keys."""
import numpy as np

from tensors import eps, math_eps

SIZES = ("q", "k", "v")


def lengths_of(case, key):
    """Returns the lengths as a list; None if all sequences are full."""
    found = case[key]
    return found if isinstance(found, list) else [found] if found else None


def inside(case, key):
    """Returns [time, batch, beam]: whether a query or key is not padding."""
    time, beams = (case["keys"], 1) if key == "klengths" else \
        (case["seq"], case["beam"])
    found = lengths_of(case, key) or [time] * (case["n"] * beams)
    return np.arange(time)[:, None, None] < np.reshape(found,
                                                       (case["n"], beams))


def vector_of(case):
    """Returns the number of elements of an output vector."""
    pv, po = case["projected"][2:]
    return po or case["heads"] * (pv or case["sizes"][2])


def weights_of(case):
    """Returns where matrices and biases are in the weights, in cuDNN's order:
    for q, k, v, o (0 to 3) the matrices as (offset, rows, columns), then (4 to
    7) the biases as (offset, columns); and the number of weights as "count"."""
    heads, at, out = case["heads"], 0, {}
    into = [case["projected"][0] or case["sizes"][0],
            case["projected"][1] or case["sizes"][1],
            case["projected"][2] or case["sizes"][2]]
    wide = heads * into[2]
    for i, size in enumerate(case["projected"]):
        if size:
            rows = case["sizes"][i] if i < 3 else wide
            columns = heads * size if i < 3 else size
            out[i] = (at, rows, columns)
            at += rows * columns
    for i, size in enumerate(case["projected"]):
        if size and case["biases"]:
            columns = heads * size if i < 3 else size
            out[4 + i] = (at, columns)
            at += columns
    out["count"] = at
    return out


class Pair:
    """Values, and the sums of the magnitudes of the terms in each."""

    def __init__(self, value, terms=None):
        self.value = value
        self.terms = abs(value) if terms is None else terms

    def __add__(self, other):
        return Pair(self.value + other.value, self.terms + other.terms)

    def __matmul__(self, other):
        return Pair(self.value @ other.value, self.terms @ other.terms)

    def of(self, function, *rest):
        """Applies a function that rearranges or adds elements."""
        return Pair(function(self.value, *rest), function(self.terms, *rest))


class Definition:
    def __init__(self, case, t, vectors=None):
        self.case, self.t = case, t
        self.queries, self.keys = inside(case, "lengths"), inside(case,
                                                                 "klengths")
        self.vectors = vectors or [Pair(self.trim(t[name], name != "q"))
                                   for name in
                                   ("q", "k", "k" if case["same"] else "v")]
        self.where = weights_of(case)
        self.heads = case["heads"]

    def trim(self, x, keys=False):
        """Returns x with zeros in place of padding."""
        return np.where((self.keys if keys else self.queries)[..., None], x, 0)

    def matrix(self, i):
        at, rows, columns = self.where[i]
        return Pair(self.t["w"][at:at + rows * columns].reshape(rows, columns))

    def project(self, x, i):
        """Returns what the heads see of x: (batch, beam, time, heads, size)."""
        x = x.of(np.moveaxis, 0, 2)
        if i not in self.where:
            return x.of(lambda a: np.repeat(a[..., None, :], self.heads, 3))
        y = x @ self.matrix(i)
        if 4 + i in self.where:
            at, columns = self.where[4 + i]
            y = y + Pair(np.broadcast_to(self.t["w"][at:at + columns],
                                         y.value.shape))
        return y.of(lambda a: a.reshape(*a.shape[:-1], self.heads, -1))

    def seen(self):
        """Returns [batch, 1, 1, query, key]: whether the query sees the key."""
        return self.window() & np.moveaxis(self.keys, 0, 2)[..., None, None, :]

    def window(self):
        case = self.case
        t, j = np.arange(case["seq"])[:, None], np.arange(case["keys"])
        if case["ragged"]:
            low = (t * 5 + case["ragged"]) % case["keys"]
            return (j >= low) & (j < low + 1 + (t * 3 + case["ragged"]) % 4)
        left, right = case["window"]
        return (j >= t - left) & (j <= t + right)

    def forward(self):
        case, t = self.case, self.t
        self.q, self.k, self.v = (
            self.project(x, i).of(lambda a: np.moveaxis(a, 3, 2))
            for i, x in enumerate(self.vectors))
        back = lambda a: np.swapaxes(a, -1, -2)
        scores = self.q @ self.k.of(back)
        mask = self.seen()
        s = np.where(mask, scores.value * case["scale"], -np.inf)
        most = s.max(-1, keepdims=True)
        weight = np.where(mask, np.exp(s - np.where(np.isfinite(most), most,
                                                    0)), 0)
        total = weight.sum(-1, keepdims=True)
        a = weight / np.where(total > 0, total, 1)
        worst = np.where(mask, scores.terms * abs(case["scale"]), 0).max(
            -1, keepdims=True)
        self.a = Pair(a, a * (1 + 2 * worst))
        self.context = (self.a @ self.v).of(
            lambda c: np.moveaxis(c, 2, 3).reshape(*c.shape[:2], c.shape[3],
                                                   -1))
        out = self.context
        if 3 in self.where:
            out = out @ self.matrix(3)
        if 7 in self.where:
            at, columns = self.where[7]
            out = out + Pair(np.broadcast_to(t["w"][at:at + columns],
                                             out.value.shape))
        out = out.of(np.moveaxis, 2, 0)
        if case["residual"]:
            out = out + Pair(t["residual"])
        return out.of(self.trim)

    def through(self, d, i):
        """Takes the gradient of what heads see, (batch, beam, heads, time,
        size). Returns the gradient of the vectors, and the gradient of the
        projected vectors (None without a projection)."""
        flat = d.of(lambda a: np.moveaxis(a, 2, 3))
        if i not in self.where:
            return flat.of(np.sum, 3), None
        flat = flat.of(lambda a: a.reshape(*a.shape[:3], -1))
        return flat @ self.matrix(i).of(np.transpose), flat

    def gradients(self):
        case, t = self.case, self.t
        back = lambda a: np.swapaxes(a, -1, -2)
        d_out = Pair(np.moveaxis(self.trim(t["do"]), 0, 2))
        d_context = d_out @ self.matrix(3).of(back) if 3 in self.where else \
            d_out
        d_heads = d_context.of(lambda c: np.moveaxis(
            c.reshape(*c.shape[:3], self.heads, -1), 3, 2))
        d_a = d_heads @ self.v.of(back)
        mean = (self.a.value * d_a.value).sum(-1, keepdims=True)
        d_s = Pair(case["scale"] * self.a.value * (d_a.value - mean),
                   abs(case["scale"]) * self.a.terms *
                   (d_a.terms + (self.a.terms * d_a.terms).sum(
                       -1, keepdims=True)))
        seen = [d_s @ self.k, d_s.of(back) @ self.q,
                self.a.of(back) @ d_heads]
        vectors = [pair.value for pair in self.vectors]
        found = {}
        dw = Pair(np.zeros(t["dw"].size))
        for i, d in enumerate(seen):
            x, flat = self.through(d, i)
            if i > 0:  # all beams see one sequence of keys
                x = x.of(lambda a: a.sum(1, keepdims=True))
            found["d" + SIZES[i]] = x.of(np.moveaxis, 2, 0)
            if flat is not None:
                self.add(dw, i, Pair(np.broadcast_to(
                    np.moveaxis(vectors[i], 0, 2),
                    (*flat.value.shape[:3], vectors[i].shape[-1]))), flat)
        if 3 in self.where:
            self.add(dw, 3, self.context, d_out)
        if case["adds"] or self.where["count"] == 0:
            dw = dw + Pair(t["dw"])
        found["dw"] = dw
        return found

    def add(self, dw, i, x, d):
        at, rows, columns = self.where[i]
        product = (x.of(lambda a: a.reshape(-1, a.shape[-1]).T) @
                   d.of(lambda a: a.reshape(-1, a.shape[-1]))).of(np.ravel)
        for total, part in ((dw.value, product.value),
                            (dw.terms, product.terms)):
            total[at:at + rows * columns] += part
        if 4 + i in self.where:
            at, columns = self.where[4 + i]
            for total, part in ((dw.value, d.value), (dw.terms, d.terms)):
                total[at:at + columns] += part.reshape(-1, columns).sum(0)

    def results(self):
        found = {"o": self.forward()}
        if self.case["twice"]:
            # The first output was rounded to its type.
            o = found["o"]
            o = Pair(o.value, o.terms + abs(o.value) * (
                eps(self.case["type"]) / math_eps(self.case["type"])))
            found["o2"] = Definition({**self.case, "residual": 0}, self.t,
                                     [o] * 3).forward()
        if self.case["train"]:
            found.update(self.gradients())
        return {name: (pair.value, pair.terms) for name, pair in found.items()}

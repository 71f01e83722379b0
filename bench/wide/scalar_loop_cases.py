"""Loops over single numbers and small tables: searches, parsers, number theory, dynamic programming by cells, decisions inside loops."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from sxs.registry import Registrar

case = Registrar("held_out")


# strings ----------------------------------------------------------------------------------------


def failure_function(pattern):
    m = pattern.shape[0]

    def body(i, s):
        fail, k = s
        k = lax.while_loop(lambda k: (k > 0) & (pattern[k] != pattern[i]), lambda k: fail[k - 1], k)
        k = jnp.where(pattern[k] == pattern[i], k + 1, k)
        return fail.at[i].set(k), k

    return lax.fori_loop(1, m, body, (jnp.zeros(m, jnp.int32), jnp.int32(0)))[0]


@case("control", lambda g: (g.ints(0, 2, 3000), g.ints(0, 2, 9)))
def knuth_morris_pratt_3000(text, pattern):
    m = pattern.shape[0]
    fail = failure_function(pattern)

    def step(s, c):
        k, found = s
        k = lax.while_loop(lambda k: (k > 0) & (pattern[k] != c), lambda k: fail[k - 1], k)
        k = jnp.where(pattern[k] == c, k + 1, k)
        hit = k == m
        return (jnp.where(hit, fail[m - 1], k), found + hit), hit

    (_, found), hits = lax.scan(step, (jnp.int32(0), jnp.int32(0)), text)
    return found, hits


@case("control", lambda g: (g.ints(0, 2, 2000),))
def prefix_function_2000(text):
    return failure_function(text)


@case("control", lambda g: (g.ints(0, 3, 1500), g.ints(0, 3, 6)))
def string_search_naive_1500(text, pattern):
    m = pattern.shape[0]

    def at(i, n):
        j = lax.while_loop(lambda j: (j < m) & (text[i + j] == pattern[jnp.minimum(j, m - 1)]), lambda j: j + 1, 0)
        return n + (j == m)

    return lax.fori_loop(0, text.shape[0] - m, at, 0)


@case("control", lambda g: (g.ints(0, 4, 4000), g.ints(0, 24, 24, 4), g.ints(0, 2, 24)))
def finite_automaton_4000(text, moves, final):
    def step(state, c):
        state = moves[state, c]
        return state, final[state]

    return lax.scan(step, jnp.int32(0), text)


@case("control", lambda g: (g.ints(0, 4, 90), g.ints(0, 4, 120)))
def edit_distance_cells_90x120(a, b):
    def row(i, last):
        def cell(j, s):
            row, left = s
            value = jnp.minimum(jnp.minimum(last[j + 1], left) + 1, last[j] + (a[i] != b[j]))
            return row.at[j + 1].set(value), value

        return lax.fori_loop(0, b.shape[0], cell, (last.at[0].set(i + 1), i + 1))[0]

    return lax.fori_loop(0, a.shape[0], row, jnp.arange(b.shape[0] + 1))[-1]


@case("control", lambda g: (g.ints(0, 3, 100), g.ints(0, 3, 100)), trips=25, ref="cpu")
def edit_distance_early_exit(a, b):
    n = b.shape[0]

    def row(s):
        i, last, _ = s

        def cell(left, args):
            up, diagonal, c = args
            value = jnp.minimum(jnp.minimum(up, left) + 1, diagonal + (a[i] != c))
            return value, value

        _, new = lax.scan(cell, i + 1, (last[1:], last[:-1], b))
        new = jnp.concatenate([i[None] + 1, new])
        return i + 1, new, new.min()

    return lax.while_loop(lambda s: (s[0] < a.shape[0]) & (s[2] <= 20), row, (jnp.int32(0), jnp.arange(n + 1), jnp.int32(0)))


@case("control", lambda g: (g.ints(-1, 2, 3000),))
def balanced_brackets_stack(tokens):
    def step(s, t):
        stack, top, bad = s
        push, pop = t > 0, t < 0
        stack = lax.cond(push, lambda s: s.at[top].set(t), lambda s: s, stack)
        bad = bad + (pop & (top == 0))
        top = jnp.clip(top + jnp.where(push, 1, jnp.where(pop, -1, 0)), 0, 63)
        return (stack, top, bad), top

    return lax.scan(step, (jnp.zeros(64, jnp.int32), jnp.int32(0), jnp.int32(0)), tokens)


@case("control", lambda g: (g.ints(0, 5, 500), g.ints(0, 8, 40), g.ints(0, 40, 40)), trips=3000)
def bytecode_interpreter_while(data, code, where):
    def step(s):
        pc, acc, at, n = s
        arg = data[at]
        acc, pc, at = lax.switch(
            code[pc],
            [
                lambda: (acc + arg, pc + 1, at),
                lambda: (acc ^ arg, pc + 1, at),
                lambda: (acc, pc + 1, (at + 7) % 500),
                lambda: (acc * 3, pc + 1, at),
                lambda: (acc, jnp.where(acc & 1 == 1, where[pc], pc + 1), at),
                lambda: (acc >> 1, pc + 1, at),
                lambda: (acc, pc + 1, (at + acc % 11) % 500),
                lambda: (-acc, pc + 1, at),
            ],
        )
        return pc % 40, acc, at, n + 1

    return lax.while_loop(lambda s: s[3] < 3000, step, (jnp.int32(0), jnp.int32(5), jnp.int32(0), jnp.int32(0)))


# number theory -------------------------------------------------------------------------------------


@case("control", lambda g: (np.int32(300),), trips=40)
def collatz_longest_below_300(n):
    def length(i, best):
        steps = lax.while_loop(
            lambda s: s[0] != 1, lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1), (i, 0)
        )[1]
        return jnp.maximum(best, steps)

    return lax.fori_loop(1, n, length, 0)


@case("control", lambda g: (g.ints(1, 1 << 20, 500), g.ints(1, 1 << 20, 500)), trips=8)
def gcd_scan_500(a, b):
    def gcd(_, ab):
        return None, lax.while_loop(lambda s: s[1] != 0, lambda s: (s[1], s[0] % s[1]), ab)[0]

    return lax.scan(gcd, None, (a, b))[1]


@case("control", lambda g: (g.ints(1, 1 << 20, 300), g.ints(1, 1 << 20, 300)), trips=15)
def gcd_vmapped_300(a, b):
    return jax.vmap(lambda a, b: lax.while_loop(lambda s: s[1] != 0, lambda s: (s[1], s[0] % s[1]), (a, b))[0])(a, b)


@case("control", lambda g: (np.int32(3000),), trips=8)
def sieve_while_3000(n):
    size = 3000

    def outer(s):
        p, sieve = s

        def cross(t):
            return t[0] + p, t[1].at[t[0]].set(False)

        sieve = lax.cond(
            sieve[p], lambda v: lax.while_loop(lambda t: t[0] < size, cross, (p * p, v))[1], lambda v: v, sieve
        )
        return p + 1, sieve

    start = jnp.ones(size, bool).at[:2].set(False)
    return lax.while_loop(lambda s: (s[0] * s[0] < size) & (s[0] < n), outer, (jnp.int32(2), start))[1].sum()


@case("control", lambda g: (g.ints(3, 60000, 100),), trips=30)
def primality_trial_division_100(x):
    def prime(n):
        d = lax.while_loop(lambda d: (d * d <= n) & (n % d != 0), lambda d: d + 1, jnp.int32(2))
        return d * d > n

    return lax.map(prime, x)


@case("control", lambda g: (g.ints(1, 1 << 15, 400), g.ints(1, 1 << 15, 400)), trips=14)
def modular_power_400(base, exponent):
    def power(_, be):
        def step(s):
            b, e, r = s
            r = jnp.where(e & 1 == 1, r * b % 32749, r)
            return b * b % 32749, e >> 1, r

        b, e = be
        return None, lax.while_loop(lambda s: s[1] > 0, step, (b % 32749, e, jnp.int32(1)))[2]

    return lax.scan(power, None, (base, exponent))[1]


# searching and sorting -------------------------------------------------------------------------------


@case("control", lambda g: (np.sort(g.normal(5000)), g.normal(600)), trips=12)
def binary_search_scan_600(table, x):
    def find(_, x):
        def step(s):
            lo, hi = s
            mid = (lo + hi) // 2
            less = table[mid] < x
            return jnp.where(less, mid + 1, lo), jnp.where(less, hi, mid)

        return None, lax.while_loop(lambda s: s[0] < s[1], step, (jnp.int32(0), jnp.int32(5000)))[0]

    return lax.scan(find, None, x)[1]


@case("control", lambda g: (g.normal(250),), trips=60)
def insertion_sort_while_250(x):
    def insert(i, x):
        v = x[i]

        def move(s):
            j, x = s
            return j - 1, x.at[j].set(x[j - 1])

        j, x = lax.while_loop(lambda s: (s[0] > 0) & (s[1][jnp.maximum(s[0] - 1, 0)] > v), move, (i, x))
        return x.at[j].set(v)

    return lax.fori_loop(1, x.shape[0], insert, x)


@case("control", lambda g: (g.normal(400),), trips=5)
def heap_push_pop_400(x):
    n = x.shape[0]

    def push(s, v):
        heap, size = s
        heap = heap.at[size].set(v)

        def up(t):
            h, k = t
            p = (k - 1) // 2
            a, b = h[p], h[k]
            return h.at[p].set(b).at[k].set(a), p

        heap, _ = lax.while_loop(lambda t: (t[1] > 0) & (t[0][(t[1] - 1) // 2] > t[0][t[1]]), up, (heap, size))
        return (heap, size + 1), None

    def pop(s, _):
        heap, size = s
        top, size = heap[0], size - 1
        heap = heap.at[0].set(heap[size]).at[size].set(jnp.inf)

        def least(h, k):
            l, r = jnp.minimum(2 * k + 1, n), jnp.minimum(2 * k + 2, n)
            return jnp.where(h[r] < h[l], r, l)

        def down(t):
            h, k = t
            c = least(h, k)
            a, b = h[k], h[c]
            return h.at[k].set(b).at[c].set(a), c

        heap, _ = lax.while_loop(lambda t: t[0][least(*t)] < t[0][t[1]], down, (heap, jnp.int32(0)))
        return (heap, size), top

    s, _ = lax.scan(push, (jnp.full(n + 1, jnp.inf, x.dtype), jnp.int32(0)), x)
    return lax.scan(pop, s, None, length=n)[1]


@case("control", lambda g: (g.normal(200),))
def selection_sort_argmin_200(x):
    def step(left, _):
        i = jnp.argmin(left)
        return left.at[i].set(jnp.inf), left[i]

    return lax.scan(step, x, None, length=x.shape[0])[1]


@case("control", lambda g: (g.ints(0, 1000, 2500),))
def longest_run_and_majority_2500(x):
    def step(s, v):
        candidate, votes, run, best, last = s
        candidate = jnp.where(votes == 0, v % 4, candidate)
        votes = jnp.where(v % 4 == candidate, votes + 1, votes - 1)
        run = jnp.where(v > last, run + 1, 1)
        return (candidate, votes, run, jnp.maximum(best, run), v), None

    zero = jnp.int32(0)
    return lax.scan(step, (zero, zero, zero, zero, zero), x)[0]


# graphs ------------------------------------------------------------------------------------------------


@case("control", lambda g: (g.ints(0, 500, 700), g.ints(0, 500, 700)), trips=3, ref="cpu")
def union_find_700_edges(a, b):
    def root(parent, x):
        return lax.while_loop(lambda x: parent[x] != x, lambda x: parent[x], x)

    def join(parent, ab):
        r, s = root(parent, ab[0]), root(parent, ab[1])
        return parent.at[r].set(s), r != s

    return lax.scan(join, jnp.arange(500), (a, b))


@case("control", lambda g: (g.ints(0, 500, 700), g.ints(0, 500, 700)), trips=2, ref="cpu")
def union_find_halving_700_edges(a, b):
    def root(parent, x):
        def up(s):
            p, x = s
            p = p.at[x].set(p[p[x]])
            return p, p[x]

        return lax.while_loop(lambda s: s[0][s[1]] != s[1], up, (parent, x))

    def join(s, ab):
        parent, size = s
        parent, r = root(parent, ab[0])
        parent, t = root(parent, ab[1])
        small, big = jnp.where(size[r] < size[t], r, t), jnp.where(size[r] < size[t], t, r)
        parent = parent.at[small].set(big)
        size = size.at[big].add(jnp.where(small != big, size[small], 0))
        return (parent, size), r != t

    return lax.scan(join, (jnp.arange(500), jnp.ones(500, jnp.int32)), (a, b))


@case("control", lambda g: (np.where(g.uniform(90, 90) < 0.1, g.uniform(90, 90, lo=1, hi=9), np.inf).astype(np.float32),))
def dijkstra_argmin_90(w):
    def step(s, _):
        dist, done = s
        u = jnp.argmin(jnp.where(done, jnp.inf, dist))
        return (jnp.minimum(dist, dist[u] + w[u]), done.at[u].set(True)), u

    start = jnp.full(90, jnp.inf, w.dtype).at[0].set(0.0)
    return lax.scan(step, (start, jnp.zeros(90, bool)), None, length=90)[0][0]


@case("control", lambda g: (g.ints(0, 400, 400, 4),), trips=300)
def breadth_first_queue_400(neighbours):
    n = 400

    def visit(s):
        queue, head, tail, depth = s
        u = queue[head]

        def edge(k, t):
            queue, tail, depth = t
            v = neighbours[u, k]
            new = depth[v] < 0
            queue = queue.at[tail].set(jnp.where(new, v, queue[tail]))
            depth = depth.at[v].set(jnp.where(new, depth[u] + 1, depth[v]))
            return queue, tail + new, depth

        queue, tail, depth = lax.fori_loop(0, 4, edge, (queue, tail, depth))
        return queue, head + 1, tail, depth

    start = (jnp.zeros(n + 1, jnp.int32), jnp.int32(0), jnp.int32(1), jnp.full(n, -1, jnp.int32).at[0].set(0))
    return lax.while_loop(lambda s: s[1] < s[2], visit, start)[3]


@case("control", lambda g: (g.ints(0, 1000, 1000),), trips=20)
def floyd_cycle_tortoise(jump):
    f = lambda x: jump[x]  # noqa: E731
    t, h = lax.while_loop(lambda s: s[0] != s[1], lambda s: (f(s[0]), f(f(s[1]))), (f(0), f(f(0))))
    mu, t, h = lax.while_loop(lambda s: s[1] != s[2], lambda s: (s[0] + 1, f(s[1]), f(s[2])), (0, jnp.int32(0), h))
    lam, _ = lax.while_loop(lambda s: s[1] != t, lambda s: (s[0] + 1, f(s[1])), (1, f(t)))
    return mu, lam


@case("control", lambda g: (g.perm(3000),), trips=2, ref="cpu")
def pointer_chase_cycles_3000(p):
    def step(s, i):
        seen, cycles = s

        def walk(t):
            j, seen = t
            return p[j], seen.at[j].set(True)

        fresh = ~seen[i]
        _, seen = lax.while_loop(lambda t: ~t[1][t[0]], walk, (i, seen))
        return (seen, cycles + fresh), None

    return lax.scan(step, (jnp.zeros(3000, bool), jnp.int32(0)), jnp.arange(3000))[0][1]


# equations ----------------------------------------------------------------------------------------------


@case("control", lambda g: (g.uniform(500, lo=0.0, hi=6.0), g.uniform(500, lo=0.0, hi=0.9)), trips=4, tol=1e-4)
def kepler_newton_scan_500(mean, ecc):
    def solve(_, me):
        m, e = me

        def step(s):
            x, _, n = s
            d = (x - e * jnp.sin(x) - m) / (1 - e * jnp.cos(x))
            return x - d, jnp.abs(d), n + 1

        x, _, n = lax.while_loop(lambda s: (s[1] > 1e-5) & (s[2] < 30), step, (m, jnp.ones_like(m), 0))
        return None, x

    return lax.scan(solve, None, (mean, ecc))[1]


@case("control", lambda g: (g.uniform(500, lo=1.0, hi=1e4),), trips=8)
def square_roots_heron_500(x):
    def root(a):
        return lax.while_loop(lambda r: jnp.abs(r * r - a) > 1e-5 * a, lambda r: 0.5 * (r + a / r), a)

    return lax.map(root, x)


@case("control", lambda g: (g.uniform(300, lo=-2.0, hi=0.6), g.uniform(300, lo=-1.2, hi=1.2)), trips=30)
def mandelbrot_scan_300(re, im):
    def point(_, c):
        a, b = c

        def step(s):
            x, y, n = s
            return x * x - y * y + a, 2 * x * y + b, n + 1

        zero = jnp.zeros_like(a)
        return None, lax.while_loop(lambda s: (s[0] * s[0] + s[1] * s[1] < 4) & (s[2] < 100), step, (zero, zero, 0))[2]

    return lax.scan(point, None, (re, im))[1]


@case("control", lambda g: (g.uniform(400, lo=0.5, hi=2.0), g.uniform(400, lo=-0.2, hi=0.2)), trips=4, tol=1e-3)
def implicit_friction_newton_scan_400(force, noise):
    def step(v, fn):
        f, n = fn

        def residual(u):
            return u - v - 0.1 * (f - 0.3 * u * u * u - jnp.tanh(5 * u)) - n

        def newton(s):
            u, _, k = s
            d = residual(u) / jax.grad(residual)(u)
            return u - d, jnp.abs(d), k + 1

        u = lax.while_loop(lambda s: (s[1] > 1e-5) & (s[2] < 20), newton, (v, jnp.ones_like(v), 0))[0]
        return u, u

    return lax.scan(step, jnp.zeros_like(force[0]), (force, noise))[1]


# branches in loops in loops ----------------------------------------------------------------------------------


@case("control", lambda g: (g.normal(300), g.uniform(300)), trips=4)
def cond_in_while_in_scan_300(x, u):
    def step(s, xu):
        x, u = xu

        def move(t):
            e, n = t
            e = lax.cond(e > 1.0, lambda e: e * 0.5 - u, lambda e: e * 1.5 + u, e)
            return e, n + 1

        e, n = lax.while_loop(lambda t: (jnp.abs(t[0]) < 3.0) & (t[1] < 8), move, (s + x, 0))
        return jnp.clip(e, -1, 1), n

    return lax.scan(step, jnp.zeros_like(x[0]), (x, u))


@case("control", lambda g: (g.uniform(1500), g.uniform(1500)), ref="cpu")
def elevator_state_machine_1500(u, w):
    def step(s, uw):
        floor, way, load, waited = s
        u, w = uw
        call = jnp.floor(u * 12).astype(jnp.int32)
        load = lax.cond(w < 0.3, lambda l: jnp.minimum(l + 1, 8), lambda l: l, load)
        way = lax.switch(
            way, [lambda: jnp.where(call > floor, 1, jnp.where(call < floor, 2, 0)),
                  lambda: jnp.where(floor == 11, 2, 1), lambda: jnp.where(floor == 0, 0, 2)]
        )  # fmt: skip
        floor = jnp.clip(floor + jnp.array([0, 1, -1])[way], 0, 11)
        out = lax.cond(floor == call, lambda l: l, lambda l: l * 0, load)
        return (floor, way, load - out, waited + load.astype(jnp.float32)), floor

    zero = jnp.int32(0)
    return lax.scan(step, (zero, zero, zero, jnp.float32(0)), (u, w))


@case("control", lambda g: (g.ints(0, 4, 800), g.ints(0, 9, 12, 12)), ref="cpu")
def grid_robot_turns_800(commands, cost):
    def step(s, c):
        x, y, d, total = s
        d = jnp.where(c == 1, (d + 1) % 4, jnp.where(c == 2, (d + 3) % 4, d))
        dx, dy = jnp.array([0, 1, 0, -1])[d], jnp.array([1, 0, -1, 0])[d]
        ahead = cost[jnp.clip(x + dx, 0, 11), jnp.clip(y + dy, 0, 11)]
        go = (c == 0) & (ahead < 7)
        x, y = jnp.where(go, jnp.clip(x + dx, 0, 11), x), jnp.where(go, jnp.clip(y + dy, 0, 11), y)
        return (x, y, d, total + cost[x, y]), x * 12 + y

    zero = jnp.int32(0)
    return lax.scan(step, (zero, zero, zero, zero), commands)


# decoding and sampling ---------------------------------------------------------------------------------------


@case("control", lambda g: (g.key(), g.normal(20, 20)), ref="cpu")
def markov_chain_categorical_400(key, logits):
    def step(s, k):
        s = jax.random.categorical(k, logits[s])
        return s, s

    return lax.scan(step, jnp.int32(0), jax.random.split(jax.random.wrap_key_data(key), 400))[1]


@case("control", lambda g: (g.uniform(1000), np.cumsum(g.uniform(16, 16, lo=0.1), axis=1).astype(np.float32)))
def inverse_cdf_walk_while_1000(u, cdf):
    def step(s, u):
        t = u * cdf[s, -1]
        k = lax.while_loop(lambda k: (k < 15) & (cdf[s, k] < t), lambda k: k + 1, jnp.int32(0))
        return k, k

    return lax.scan(step, jnp.int32(0), u)[1]


@case("control", lambda g: (g.normal(60, 28),))
def ctc_greedy_collapse_60x28(logits):
    best = logits.argmax(-1)

    def step(s, t):
        out, n, last = s
        keep = (t != last) & (t != 0)
        out = out.at[n].set(jnp.where(keep, t, out[n]))
        return (out, n + keep, t), None

    return lax.scan(step, (jnp.zeros(61, best.dtype), jnp.int32(0), jnp.zeros((), best.dtype)), best)[0][:2]


@case("control", lambda g: (g.ints(0, 2, 4000), g.ints(-1, 31, 32, 2)))
def huffman_decode_4000_bits(bits, tree):
    def step(s, b):
        node, count = s
        node = tree[node, b]
        leaf = node < 0
        return (jnp.where(leaf, 0, node), count + leaf), leaf

    return lax.scan(step, (jnp.int32(0), jnp.int32(0)), bits)


@case("control", lambda g: (g.ints(0, 1 << 30, 64), g.ints(0, 3000, 1)))
def linear_feedback_and_crc_2000(table, seed):
    def step(_, s):
        crc, x = s
        x = (x ^ (x << 13)) & 0x7FFFFFFF
        x = x ^ (x >> 17)
        x = (x ^ (x << 5)) & 0x7FFFFFFF
        return table[(crc ^ x) & 63] ^ (crc >> 6), x

    return lax.fori_loop(0, 2000, step, (jnp.int32(7), seed[0] + 1))


# small dynamics ------------------------------------------------------------------------------------------------


@case("control", lambda g: (g.normal(5), g.uniform(1200, lo=-1, hi=1)), tol=2e-3)
def quadruple_tank_pid_1200(s, target):
    def step(c, r):
        h, i, last = c
        e = r - h[0]
        i = jnp.clip(i + 0.01 * e, -1, 1)
        u = jnp.clip(2.0 * e + 0.5 * i + 0.05 * (e - last) / 0.01, -3, 3)
        flow = jnp.sqrt(jnp.maximum(h, 0.0) + 0.01)
        h = h + 0.01 * (jnp.roll(flow, 1) - flow + u * jnp.array([1.0, 0.5, 0.2, 0.0, 0.1], h.dtype))
        return (h, i, e), h[0]

    zero = jnp.zeros((), s.dtype)
    return lax.scan(step, (s, zero, zero), target)


@case("control", lambda g: (g.normal(2), g.uniform(600)), tol=2e-3)
def bouncing_ball_events_600(s, kicks):
    def step(c, k):
        def sub(t):
            y, v, left, n = t
            hit = (y <= 0) & (v < 0)
            v = jnp.where(hit, -0.8 * v, v)
            h = jnp.minimum(left, 0.003)
            return jnp.maximum(y + h * v, 0), v - 9.81 * h, left - h, n + hit

        y, v, _, n = lax.while_loop(lambda t: t[2] > 1e-6, sub, (c[0], c[1], jnp.float32(0.01), jnp.int32(0)))
        return (y, v + 0.1 * k), n

    return lax.scan(step, (jnp.abs(s[0]) + 1, s[1]), kicks)


@case("control", lambda g: (g.uniform(500), g.normal(500, scale=0.01)))
def order_book_queue_500(size, move):
    def step(s, sm):
        levels, mid = s
        q, m = sm
        mid = mid + m

        def take(t):
            q, k, levels, paid = t
            got = jnp.minimum(q, levels[k])
            return q - got, k + 1, levels.at[k].add(-got), paid + got * (mid + 0.01 * k)

        _, _, levels, paid = lax.while_loop(
            lambda t: (t[0] > 1e-6) & (t[1] < 10), take, (q * 2, jnp.int32(0), levels, jnp.zeros_like(q))
        )
        return (levels + 0.1 * (1 - levels), mid), paid

    return lax.scan(step, (jnp.ones(10, size.dtype), jnp.ones((), size.dtype)), (size, move))

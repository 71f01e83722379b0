#!/ usr / bin / env python3
""
    "Minimax polynomials for the math functions (Remez exchange with mpmath), printed as C++ initialisers.

    python3 minimax.py all of them python3 minimax.py exp32 one

        Each row : a function
                   g(t) to approximate by a polynomial in t on an interval, and a weight w(t): w(t) * (p(t) - g(t)) is what is made
small, so that it is the error of the whole function relative to its value. Coefficients are rounded to the format in which they are used.
"""
import struct
import sys

from mpmath import mp, mpf, matrix, lu_solve, exp, log, sin, cos, atan, sqrt, erf, erfc, pi, chebyt

mp.dps = 60


def remez(g, w, low, high, degree, rounds=30):
    low, high = mpf(low), mpf(high)
    n = degree + 2
    points = [(low + high) / 2 - (high - low) / 2 * cos(pi * k / (n - 1)) for k in range(n)]
    for _ in range(rounds):
        a, b = matrix(n, n), matrix(n, 1)
        for r, t in enumerate(points):
            if w(t) == 0:  # a zero of the weight cannot be an extremum
                t = low + (high - low) * mpf('1e-6') if t == low else t + (high - low) * mpf('1e-3')
                points[r] = t
            for c in range(degree + 1):
                a[r, c] = t ** c
            a[r, degree + 1] = (-1) ** r / w(t)
            b[r] = g(t)
        solution = lu_solve(a, b)
        coefficients = [solution[c] for c in range(degree + 1)]

        def error(t):
            return w(t) * (sum(c * t ** k for k, c in enumerate(coefficients)) - g(t))

        grid = [low + (high - low) * k / 2000 for k in range(2001)]
        values = [error(t) for t in grid]
        extrema, start = [], 0
        for k in range(1, len(grid) + 1):  # the largest value between changes of sign
            if k == len(grid) or (values[k] > 0) != (values[start] > 0):
                extrema.append(max(range(start, k), key=lambda i: abs(values[i])))
                start = k
        worst = max(abs(v) for v in values)
        if len(extrema) < n:
            break
        while len(extrema) > n:
            extrema.pop(0 if abs(values[extrema[0]]) < abs(values[extrema[-1]]) else -1)
        points = [grid[i] for i in extrema]
        if worst - min(abs(values[i]) for i in extrema) < worst / 1000:
            break
    return coefficients, worst


def small(f, t, limit):  # limit value where the formula is 0/0
    return limit if t == 0 else f(t)


L = log(mpf(2)) / 2
ROWS = {
#e ^ r = 1 + r + r ^ 2 p(r)
    'exp32': (lambda r: small(lambda r: (exp(r) - 1 - r) / r**2, r, mpf(1) / 2), lambda r: r * r / exp(r), -L * 1.01, L * 1.01, 4, 'f'),
    'exp64': (lambda r: small(lambda r: (exp(r) - 1 - r) / r**2, r, mpf(1) / 2), lambda r: r * r / exp(r), -L * 1.01, L * 1.01, 10, 'd'),
#log(1 + f) = f - f ^ 2 / 2 + f ^ 3 p(f), f from sqrt(1 / 2) - 1 to sqrt(2) - 1
    'log32': (lambda f: small(lambda f: (log(1 + f) - f + f * f / 2) / f**3, f, mpf(1) / 3),
              lambda f: small(lambda f: f**3 / log(1 + f), f, mpf(0)) , sqrt(mpf(1) / 2) - 1, sqrt(mpf(2)) - 1, 8, 'f'),
#log((1 + s) / (1 - s)) = 2s + s z p(z), z = s ^ 2
    'log64': (lambda z: small(lambda z: (log((1 + sqrt(z)) / (1 - sqrt(z))) - 2 * sqrt(z)) / (sqrt(z) * z), z, mpf(2) / 3),
              lambda z: z, 0, mpf('0.0296'), 6, 'd'),
#sin r = r + r z p(z); cos r = 1 - z / 2 + z ^ 2 p(z)
    'sin64': (lambda z: small(lambda z: (sin(sqrt(z)) - sqrt(z)) / (sqrt(z) * z), z, -mpf(1) / 6), lambda z: z, 0, (pi / 4)**2 * 1.02, 5, 'd'),
    'cos64': (lambda z: small(lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2, z, mpf(1) / 24), lambda z: z * z, 0, (pi / 4)**2 * 1.02, 5, 'd'),
#the same for a float's worth of accuracy, evaluated in double
    'sin32': (lambda z: small(lambda z: (sin(sqrt(z)) - sqrt(z)) / (sqrt(z) * z), z, -mpf(1) / 6), lambda z: z, 0, (pi / 4)**2 * 1.02, 3, 'd'),
    'cos32': (lambda z: small(lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2, z, mpf(1) / 24), lambda z: z * z, 0, (pi / 4)**2 * 1.02, 3, 'd'),
#atan t = t + t z p(z), z = t ^ 2 in[0, 1], for floats, in double
    'atan32': (lambda z: small(lambda z: (atan(sqrt(z)) - sqrt(z)) / (sqrt(z) * z), z, -mpf(1) / 3),
               lambda z: small(lambda z: sqrt(z) * z / atan(sqrt(z)), z, mpf(0)), 0, 1, 12, 'd'),
#erf x = x p(x ^ 2) up to 1; erfc x = e ^ (-x ^ 2) p(t), t = 1 / (1 + x / 2), beyond
    'erf32': (lambda z: small(lambda z: erf(sqrt(z)) / sqrt(z), z, 2 / sqrt(pi)), lambda z: mpf(1), 0, mpf('1.05'), 7, 'd'),
    'erfc32': (lambda t: exp((2 / t - 2)**2) * erfc(2 / t - 2), lambda t: exp(-(2 / t - 2)**2), 2 / (2 + mpf('4.2')), 2 / (2 + mpf('0.95')), 8, 'd'),
}


def rounded(c, kind):
    return struct.unpack(kind, struct.pack(kind, float(c)))[0]


if __name__ == '__main__':
    for name in sys.argv[1:] or ROWS:
        g, w, low, high, degree, kind = ROWS[name]
        coefficients, worst = remez(g, w, low, high, degree)
        print(f'// {name}: error 2^{float(log(worst, 2)):.1f}')
        print('{' + ', '.join(repr(rounded(c, kind)) for c in coefficients) + '}')

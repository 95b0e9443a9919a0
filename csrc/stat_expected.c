/* Expectations under ties, without cancellation.
 *
 * An answer's rank is spread evenly over greater + 1 .. greater + size. The textbook forms H(b) -
 * H(a) and lgamma(b + 1) - lgamma(a + 1) subtract numbers that agree in nearly all digits when the
 * tie is short and the rank is deep. So the first PEELED terms are summed directly, and the rest of
 * a longer tie is an asymptotic difference, based on log1p.
 *
 * With several answers in the tie, the place of the first one inside it is negative-hypergeometric:
 * P(X = j) = C(size - j, answers - 1) / C(size, answers). */
#include <math.h>
#include "stat.h"

/* Beyond this many terms the asymptotic series are exact to under 1e-16. */
#define PEELED 32
/* Ranks below 2^63 whose product a double still holds. */
#define FACTORS 16
/* Largest growth of rounding errors under which the short recurrence is trusted. */
#define AMPLIFICATION 64.0
#define NEGLIGIBLE 1e-18

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* The harmonic series' terms from x^-4: too small for their cancellation to matter. */
static double harmonic_tail(double x) {
    double inverse = 1.0 / (x * x);
    return inverse * inverse * (1.0 / 120.0 - inverse * (1.0 / 252.0 - inverse / 240.0));
}

/* H(a + length) - H(a) for a >= PEELED (Euler-Maclaurin, term by term). */
static double harmonic_difference(double a, double length) {
    double b = a + length, product = a * b;
    double linear = -length / (2.0 * product);
    double square = length * (a + b) / (12.0 * product * product);
    return log1p(length / a) + linear + square + harmonic_tail(b) - harmonic_tail(a);
}

/* Stirling's series from x^-3: too small for its cancellation to matter. */
static double stirling_tail(double x) {
    double inverse = 1.0 / (x * x);
    return inverse / x * (-1.0 / 360.0 + inverse * (1.0 / 1260.0 - inverse / 1680.0));
}

/* ln((a + length)! / a!) for a >= PEELED, from Stirling's series of each factorial. */
static double log_factorial_difference(double a, double length) {
    double b = a + length;
    double leading = length * (log(a) - 1.0) + (b + 0.5) * log1p(length / a);
    double first = -length / (12.0 * a * b);
    return leading + first + stirling_tail(b) - stirling_tail(a);
}

static double mean_reciprocal(int64_t greater, int64_t size) {
    double start = (double)greater, total = 0;
    int64_t peeled = smaller(size, PEELED);
    for (int64_t i = 1; i <= peeled; i++) total += 1.0 / (start + (double)i);
    if (size > PEELED) total += harmonic_difference(start + PEELED, (double)(size - PEELED));
    return total / (double)size;
}

static double mean_log(int64_t greater, int64_t size) {
    double start = (double)greater, total = 0;
    int64_t peeled = smaller(size, PEELED);
    for (int64_t i = 0; i < peeled; i += FACTORS) {
        double product = 1;
        int64_t end = smaller(i + FACTORS, peeled);
        for (int64_t j = i + 1; j <= end; j++) product *= start + (double)j;
        total += log(product);
    }
    if (size > PEELED) total += log_factorial_difference(start + PEELED, (double)(size - PEELED));
    return total / (double)size;
}

/* Sums P(X = j) / (greater + j); every term is positive. */
static double first_by_summation(int64_t greater, int64_t size, int64_t answers) {
    double total = 0, survival = 1, m = (double)answers;
    int64_t last = size - answers + 1;
    for (int64_t j = 1; j <= last && survival > NEGLIGIBLE; j++) {
        double left = (double)(size - j + 1);
        total += survival * (m / left) / ((double)greater + (double)j);
        survival *= (left - m) / left;
    }
    return total;
}

/* Steps from one answer to all: E_m = m ((N - m + 2) E_(m-1) - 1) / ((m - 1)(T - m + 1)), with N =
 * greater + size and T = size. This follows from C(n, m) = C(n, m - 1) (n - m + 1) / m. `growth`
 * bounds the growth of rounding errors. It rises by more than 1 per step, so steps are few. */
static double first_reciprocal(int64_t greater, int64_t size, int64_t answers) {
    double value = mean_reciprocal(greater, size), growth = 1;
    for (int64_t m = 2; m <= answers; m++) {
        double product = (double)(greater + size - m + 2) * value, rest = product - 1.0;
        growth = (growth + 1.0) * product / rest;
        if (!(rest > 0 && growth <= AMPLIFICATION))
            return first_by_summation(greater, size, answers);
        value = (double)m * rest / ((double)(m - 1) * (double)(size - m + 1));
    }
    return value;
}

/* P(X <= inside) = 1 - C(size - inside, answers) / C(size, answers): the probability of an answer
 * among the first places, place by place (or answer by answer). */
static double first_inside(int64_t inside, int64_t size, int64_t answers) {
    int64_t steps = smaller(inside, answers), other = inside + answers - steps;
    /* No branch: whether an answer can be inside at all is unpredictable. */
    double chance = (double)(smaller(steps, 1) * other) / (double)size;
    for (int64_t step = 1; step < steps && chance < 1; step++) {
        double left = (double)(size - step);
        chance += (double)other >= left ? 1 - chance : (1 - chance) * ((double)other / left);
    }
    return chance;
}

void kgt_expected_reciprocal(const kgt_ties *ties, double *out) {
    for (int64_t i = 0; i < ties->n; i++)
        out[i] = first_reciprocal(ties->greater[i], ties->size[i], ties->answers[i]);
}

void kgt_expected_log(const kgt_ties *ties, double *out) {
    for (int64_t i = 0; i < ties->n; i++) out[i] = mean_log(ties->greater[i], ties->size[i]);
}

void kgt_expected_hits(const kgt_ties *ties, int64_t k, double *out) {
    for (int64_t i = 0; i < ties->n; i++) {
        int64_t inside = larger(0, smaller(k - ties->greater[i], ties->size[i]));
        out[i] = first_inside(inside, ties->size[i], ties->answers[i]);
    }
}

/**
 * The cumulative distribution function of the normal distribution, for gelu:
 * gelu(x) = x * normalCdf(x) = x * (1 + erf(x / sqrt(2))) / 2.
 *
 * With u = |x|, the function (1 + 1.25 u) * exp(u^2 / 2) * normalCdf(-u) is a Chebyshev series in t = (u - 5) / (u +
 * 5), which maps u >= 0 to [-1, 1). The form is from Shepherd and Laframboise, "Chebyshev approximation of (1+2x)
 * exp(x^2) erfc x in 0 <= x < inf" (Math. Comp. 36, 1981). The coefficients were interpolated at 60 points in 60-digit
 * arithmetic and cut where the rest is below 2^-57. Unlike 1 + erf, the result keeps its relative accuracy in the lower
 * tail: wherever it is a normal double, the relative error is below 8 * 2^-53 (measured at 6,000 points: 6.0).
 */
/** Of T0, T2, T4 and so on. */
const evenCoefficients = Float64Array.of(
  0.5385288138992342,
  -0.028386077272723416,
  -0.010014371788857852,
  -0.0007773358378847752,
  -1.2492600229847826e-5,
  3.951505696905665e-7,
  -6.3517209623716656e-9,
  5.119550416240489e-11,
  1.4153040384573e-12,
  -1.0696250192131425e-13,
  4.604424764513564e-15,
  -1.5321124561749416e-16,
  2.996126874418231e-18,
);

/** Of T1, T3, T5 and so on. */
const oddCoefficients = Float64Array.of(
  -0.02645925107935259,
  0.022438833059881966,
  0.0032270946077398253,
  0.00013291756873865117,
  -6.331162602793908e-7,
  -3.7434383155557186e-8,
  1.6999795574677543e-9,
  -5.7296362937918556e-11,
  1.9141195007673026e-12,
  -6.892737587234324e-14,
  2.7324224089305913e-15,
  -1.174225371662994e-16,
  5.276781438013796e-18,
);

/** For u above this, the lower tail is 0 in double. */
const underflow = 38.6;

/** In double: 0 at -Infinity, 1 at Infinity, NaN at NaN. */
export function normalCdf(x: number): number {
  const u = Math.abs(x);
  if (u > underflow) return x < 0 ? 0 : 1;
  const t = (u - 5) / (u + 5);
  const series = chebyshev(t);
  // exp(-u^2 / 2) with u^2 exact in two terms: the float32 nearest to u has an exact square.
  const high = Math.fround(u);
  const low = u - high;
  const leading = Math.exp(-0.5 * high * high);
  const gaussian = low === 0 ? leading : leading * Math.exp(-0.5 * low * (u + high));
  const tail = (series * gaussian) / (1 + 1.25 * u);
  return x < 0 ? tail : 1 - tail;
}

/**
 * The series at t, by Clenshaw's recurrence over s = 2 t^2 - 1, separately for even and odd terms: T[2j](t) = T[j](s),
 * and T[2j+1](t) = t V[j](s) with the Chebyshev polynomials V of the third kind. The two chains of dependent operations
 * are half as long and run in parallel.
 */
function chebyshev(t: number): number {
  const twice = 4 * t * t - 2;
  let even = 0;
  let evenBefore = 0;
  let odd = 0;
  let oddBefore = 0;
  for (let j = evenCoefficients.length - 1; j > 0; j--) {
    const nextEven = twice * even + ((evenCoefficients[j] ?? NaN) - evenBefore);
    const nextOdd = twice * odd + ((oddCoefficients[j] ?? NaN) - oddBefore);
    evenBefore = even;
    oddBefore = odd;
    even = nextEven;
    odd = nextOdd;
  }
  const evenSum = 0.5 * twice * even + ((evenCoefficients[0] ?? NaN) - evenBefore);
  const oddFirst = twice * odd + ((oddCoefficients[0] ?? NaN) - oddBefore);
  return evenSum + t * (oddFirst - odd);
}

/**
 * Seeded random numbers for inputs, interleavings and tests. A seed gives the same sequence on every machine. The
 * generator is sfc32 (Chris Doty-Humphrey, PractRand), seeded through splitmix32.
 */
export interface Random {
  /** A 32-bit unsigned integer. */
  uint32(): number;
  /** A float in [0, 1) with 32 random bits. */
  float(): number;
  /** An integer in [0, below). `below` is at least 1. */
  integer(below: number): number;
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const splitmix = (): number => {
    state = (state + 0x9e3779b9) >>> 0;
    let z = state;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0;
  };
  let a = splitmix();
  let b = splitmix();
  let c = splitmix();
  let counter = 1;
  const uint32 = (): number => {
    const sum = (a + b + counter) >>> 0;
    counter = (counter + 1) >>> 0;
    a = (b ^ (b >>> 9)) >>> 0;
    b = (c + (c << 3)) >>> 0;
    c = ((c << 21) | (c >>> 11)) >>> 0;
    c = (c + sum) >>> 0;
    return sum;
  };
  for (let i = 0; i < 12; i++) uint32();
  const float = (): number => uint32() / 0x1_0000_0000;
  return { uint32, float, integer: (below) => Math.floor(float() * below) };
}

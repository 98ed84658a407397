/**
 * 64 bits of a text, to tell apart texts that are too long to keep: two hashes in the manner of MurmurHash3, with
 * different constants. A thousand different texts have a pair of equal digests with a probability below 10^-13.
 */
export interface TextDigest {
  readonly add: (text: string) => void;
  /** Of all texts that were added, and of how they were divided. */
  readonly value: () => string;
}

export function createTextDigest(): TextDigest {
  let [a, b] = [0x9e3779b9, 0x85ebca6b];
  const mix = (value: number): void => {
    a = Math.imul(a ^ value, 0xcc9e2d51);
    a = Math.imul((a << 15) | (a >>> 17), 5) + 0x1b873593;
    b = Math.imul(b ^ value, 0xc2b2ae35);
    b = Math.imul((b << 13) | (b >>> 19), 9) + 0x27d4eb2f;
  };
  return {
    add: (text) => {
      for (let i = 0; i < text.length; i++) mix(text.charCodeAt(i));
      mix(text.length);
    },
    value: () => [a, b].map(finished).join(" "),
  };
}

/** Every bit of the state changes half of the bits of the result. */
function finished(state: number): number {
  let left = state;
  left = Math.imul(left ^ (left >>> 16), 0x85ebca6b);
  left = Math.imul(left ^ (left >>> 13), 0xc2b2ae35);
  return (left ^ (left >>> 16)) >>> 0;
}

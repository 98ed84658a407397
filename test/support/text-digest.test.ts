import { expect, it } from "vitest";
import { createTextDigest } from "../../src/tune/choose/consider.ts";

function digestOf(...texts: readonly string[]): string {
  const digest = createTextDigest();
  for (const text of texts) digest.add(text);
  return digest.value();
}

it("is the same for the same texts", () => {
  expect(digestOf("copy 1", "copy 2")).toBe(digestOf("copy 1", "copy 2"));
});

it("differs by order, division and every character", () => {
  const texts = [[], [""], ["", ""], ["ab", "c"], ["a", "bc"], ["bc", "a"], ["abc"], ["abd"], ["acb"], ["abc\0"]];
  expect(new Set(texts.map((each) => digestOf(...each))).size).toBe(texts.length);
});

it("tells 200,000 short texts apart, by each half up to the pairs that chance gives", () => {
  const digests = Array.from({ length: 200_000 }, (_, i) => digestOf(`{"kind":"waitEvent","stream":0,"event":${i}}`));
  expect(new Set(digests).size).toBe(digests.length);
  for (const half of [0, 1]) {
    const distinct = new Set(digests.map((digest) => digest.split(" ")[half])).size;
    // n^2 / 2^33 pairs are 4.7.
    expect(digests.length - distinct).toBeLessThan(20);
  }
});

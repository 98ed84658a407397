/** Repeats in lists: layers and chunks, found by what they are made of. */
import { expect, it } from "vitest";
import { repeatsOf } from "../../src/support/repeats.ts";

function repeats(text: string, least = 4): readonly string[] {
  const items = Array.from(text, (letter) => letter.codePointAt(0) ?? 0);
  return repeatsOf(items, least).map(
    ({ start, period, times }) => `${times} x ${text.slice(start, start + period)} at ${start}`,
  );
}

it("finds layers between what stands once", () => {
  expect(repeats("xyabcdeabcdeabcdez")).toEqual(["3 x abcde at 2"]);
});

it("finds several, one behind the other", () => {
  expect(repeats("abcdabcdabcd-vwxyzvwxyzvwxyzvwxyz")).toEqual(["3 x abcd at 0", "4 x vwxyz at 13"]);
});

it("takes the layer, not the chunks in it", () => {
  expect(repeats("cccccabcccccabcccccab")).toEqual(["3 x cccccab at 0"]);
  expect(repeats("cccccccc")).toEqual(["8 x c at 0"]);
});

it("takes layers that stand there often enough, not the whole of them that stands there twice", () => {
  expect(repeats("abcdabcdabcd-abcdabcdabcd-")).toEqual(["3 x abcd at 0", "3 x abcd at 13"]);
});

it("leaves a part of a layer behind the last whole one", () => {
  expect(repeats("abcdabcdabcdab")).toEqual(["3 x abcd at 0"]);
});

it("finds none that leave out too little, or stand twice", () => {
  expect(repeats("abcdabcdabcd", 9)).toEqual([]);
  expect(repeats("abcdefabcdef")).toEqual([]);
  expect(repeats("")).toEqual([]);
});

/** Frames are read correctly however their bytes are divided, and no frame above the limit is stored. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeFrame, FrameError, type WireFrame, frameKinds, frameReader } from "../../src/launch/hub/frames.ts";

const kinds = Object.values(frameKinds);

describe("frames", () => {
  it("come out as they went in, however the bytes are divided", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom(...kinds), fc.uint8Array({ maxLength: 40 })), { maxLength: 8 }),
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 30 }),
        (wanted, cuts) => {
          const bytes = Buffer.concat(wanted.map(([kind, body]) => encodeFrame(kind, body)));
          const reader = frameReader(64);
          const got: WireFrame[] = [];
          for (let at = 0, i = 0; at < bytes.length; i++) {
            const length = cuts[i % cuts.length] ?? 1;
            got.push(...reader.push(bytes.subarray(at, at + length)));
            at += length;
          }
          expect(got.map(({ kind, body }) => [kind, [...body]])).toEqual(
            wanted.map(([kind, body]) => [kind, [...body]]),
          );
        },
      ),
    );
  });

  it("are refused by their length alone", () => {
    const reader = frameReader(8);
    expect(() => reader.push(Uint8Array.of(9, 0, 0, 0))).toThrow(FrameError);
    expect(() => frameReader(8).push(Uint8Array.of(0, 0, 0, 0))).toThrow(FrameError);
    const grown = frameReader(8);
    grown.setLimit(9);
    expect(grown.push(Uint8Array.of(9, 0, 0, 0))).toEqual([]);
  });
});

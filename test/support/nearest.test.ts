import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { editDistance, nearest, suggestion } from "../../src/support/wording.ts";

describe("editDistance", () => {
  it.each([
    ["", "", 0],
    ["abc", "abc", 0],
    ["", "abc", 3],
    ["devices", "device", 1],
    ["devcies", "devices", 1],
    ["kitten", "sitting", 3],
  ])("%s to %s is %i", (a, b, distance) => {
    expect(editDistance(a, b)).toBe(distance);
    expect(editDistance(b, a)).toBe(distance);
  });

  it("is at most the longer length, and 0 only for equal texts", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 8 }), fc.string({ maxLength: 8 }), (a, b) => {
        const distance = editDistance(a, b);
        expect(distance).toBeLessThanOrEqual(Math.max(a.length, b.length));
        expect(distance).toBeGreaterThanOrEqual(Math.abs(a.length - b.length));
        expect(distance === 0).toBe(a === b);
      }),
    );
  });
});

describe("nearest", () => {
  const known = ["--devices", "--rank", "--style", "--set"];
  it("finds a mistyped name", () => {
    expect(nearest("--device", known)).toBe("--devices");
    expect(nearest("--stlye", known)).toBe("--style");
  });
  it("ignores case", () => {
    expect(nearest("m", ["S", "M"])).toBe("M");
  });
  it("finds nothing far away", () => {
    expect(nearest("--verbose", known)).toBeUndefined();
    expect(nearest("x", [])).toBeUndefined();
    expect(nearest("Q", ["S", "M"])).toBeUndefined();
    expect(suggestion("--verbose", known, "see --help")).toBe("see --help");
    expect(suggestion("--ran", known, "see --help")).toBe("did you mean --rank?");
  });
});

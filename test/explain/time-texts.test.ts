import { expect, it } from "vitest";
import { exposedText } from "../../src/explain/time-texts.ts";

it("says what is exposed, and what is gained over the serial form's kernels", () => {
  expect(exposedText(0.0125)).toBe("12.5 us exposed");
  expect(exposedText(0)).toBe("0.0 us exposed");
  expect(exposedText(-0.0735)).toBe("nothing exposed, 73.5 us shorter than the serial form's kernels alone");
});

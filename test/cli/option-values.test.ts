import { describe, expect, it } from "vitest";
import { assignment, choice, numbers, positiveNumber, sizes, wholeNumber } from "../../src/cli/flags/option-values.ts";
import type { DiagnosticError } from "../../src/diagnostics/diagnostic.ts";

function messageOf(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    return (error as DiagnosticError).message;
  }
  throw new Error("the call did not throw");
}

describe("wholeNumber", () => {
  it("takes whole numbers from the least on", () => {
    expect(wholeNumber("--devices", 1)("8")).toBe(8);
    expect(wholeNumber("--rank", 0)("0")).toBe(0);
  });
  it.each(["0", "-1", "1.5", "two", "", "1e3", "0x10", "99999999999999999999", "NaN", "Infinity"])(
    "refuses %j",
    (text) => {
      const message = messageOf(() => wholeNumber("--devices", 1)(text));
      expect(message).toContain("error[option-value]");
      expect(message).toContain("--devices");
      expect(message).toContain(`found: ${text === "" ? "nothing" : text}`);
      expect(message).toContain("expected: a whole number of at least 1");
      expect(message).toContain("fix: ");
    },
  );
});

describe("positiveNumber", () => {
  it("takes fractions", () => {
    expect(positiveNumber("--timeout", 30)("0.5")).toBe(0.5);
  });
  it.each(["0", "-2", "soon", " ", "Infinity"])("refuses %j", (text) => {
    expect(messageOf(() => positiveNumber("--timeout", 30)(text))).toContain("expected: a number greater than 0");
  });
});

describe("choice", () => {
  it("takes the choices only", () => {
    expect(choice("--on", ["cpu", "cuda"])("cuda")).toBe("cuda");
    expect(messageOf(() => choice("--on", ["cpu", "cuda"])("tpu"))).toContain("expected: one of cpu, cuda");
  });
});

describe("assignment", () => {
  const set = assignment("--set", "M=32", numbers);
  const size = assignment("--size", "i0=8", sizes);
  const none: ReadonlyMap<string, number> = new Map();

  it("collects names and values", () => {
    expect([...set("N=-1.5e2", set(" M = 32 ", none))]).toEqual([
      ["M", 32],
      ["N", -150],
    ]);
    expect([...size("i0=8", none)]).toEqual([["i0", 8]]);
  });
  it.each(["M", "M=", "=3", "M=x", "M=1=2", "1M=2", "M=0x10", "M=1e999", ""])("refuses --set %j", (text) => {
    expect(messageOf(() => set(text, none))).toContain("write it like --set M=32");
  });
  it.each(["i0=0", "i0=-1", "i0=1.5", "i0"])("refuses --size %j", (text) => {
    expect(messageOf(() => size(text, none))).toContain("a whole number of at least 1");
  });
  it("refuses a name that came before", () => {
    expect(messageOf(() => set("M=2", set("M=1", none)))).toContain("M=1 came before");
  });
});

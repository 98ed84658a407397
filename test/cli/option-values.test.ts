/** Values of flags: the accepted ones, and the message for any other. */
import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { addFlags } from "../../src/cli/flags/option-flags.ts";
import type { DiagnosticError } from "../../src/diagnostics/diagnostic.ts";

/** The value of an option of `braid lower` or `braid run` as these arguments give it. */
function valueOf(command: "lower" | "run", option: string, ...args: readonly string[]): unknown {
  return addFlags(new Command(), command).parse(args, { from: "user" }).getOptionValue(option);
}

function messageOf(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    return (error as DiagnosticError).message;
  }
  throw new Error("the call did not throw");
}

describe("a whole number", () => {
  it("is at least the least", () => {
    expect(valueOf("run", "devices", "--devices", "8")).toBe(8);
    expect(valueOf("lower", "rank", "--rank", "0")).toBe(0);
  });
  it.each(["0", "-1", "1.5", "two", "", "1e3", "0x10", "99999999999999999999", "NaN", "Infinity"])(
    "refuses %j",
    (text) => {
      const message = messageOf(() => valueOf("run", "devices", `--devices=${text}`));
      expect(message).toContain("error[option-value]");
      expect(message).toContain("--devices");
      expect(message).toContain(`found: ${text === "" ? "nothing" : text}`);
      expect(message).toContain("expected: a whole number of at least 1");
      expect(message).toContain("fix: write it like --devices 8");
    },
  );
});

describe("seconds", () => {
  it("may be fractions", () => {
    expect(valueOf("run", "timeout", "--timeout", "0.5")).toBe(0.5);
  });
  it.each(["0", "-2", "soon", " ", "Infinity"])("refuse %j", (text) => {
    expect(messageOf(() => valueOf("run", "timeout", `--timeout=${text}`))).toContain(
      "expected: a number greater than 0",
    );
  });
});

describe("a choice", () => {
  it("takes the choices only", () => {
    expect(valueOf("run", "on", "--on", "cuda")).toBe("cuda");
    expect(messageOf(() => valueOf("run", "on", "--on", "tpu"))).toContain("expected: one of cpu, cuda");
  });
});

describe("named numbers", () => {
  const set = (...texts: readonly string[]): unknown =>
    valueOf("run", "set", ...texts.flatMap((text) => ["--set", text]));
  const sizes = (...texts: readonly string[]): unknown =>
    valueOf("run", "sizes", ...texts.flatMap((text) => ["--sizes", text]));

  it("are collected", () => {
    const expected = new Map([
      ["M", 32],
      ["N", -150],
    ]);
    expect(set(" M = 32 ", "N=-1.5e2")).toEqual(expected);
    expect(set("M=32,N=-150")).toEqual(expected);
    expect(sizes("i0=8")).toEqual(new Map([["i0", 8]]));
    expect(sizes()).toEqual(new Map());
  });
  it.each(["M", "M=", "=3", "M=x", "M=1=2", "1M=2", "M=0x10", "M=1e999", "M=1,", "M=1,M=1", ""])(
    "refuse --set %j",
    (text) => {
      expect(messageOf(() => set(text))).toContain("write it like --set M=32");
    },
  );
  it.each(["i0=0", "i0=-1", "i0=1.5", "i0"])("refuse --sizes %j", (text) => {
    expect(messageOf(() => sizes(text))).toContain("a whole number of at least 1");
  });
  it("of --set may be dtypes", () => {
    expect(set("dtype=bfloat16,M=8")).toEqual(
      new Map<string, unknown>([
        ["dtype", "bfloat16"],
        ["M", 8],
      ]),
    );
    expect(messageOf(() => set("ROWS"))).toContain("write it like --set ROWS=32");
    expect(messageOf(() => set("DTYPE=fp16"))).toContain("write it like --set DTYPE=half");
    expect(messageOf(() => set("DTYPE=fp8"))).toContain("write it like --set DTYPE=half");
    expect(messageOf(() => set("dtype=bf16"))).toContain(
      "expected: NAME=VALUE, where VALUE is a number, or a dtype: double, float, half, bfloat16, float8_e4m3fn, float8_e5m2, int, int64, bool",
    );
  });
  it("have each name once", () => {
    expect(messageOf(() => set("M=1", "M=2"))).toContain("M=1 came before");
  });
});

describe("files of inputs", () => {
  const input = (...texts: readonly string[]): unknown =>
    valueOf("run", "inputs", ...texts.flatMap((text) => ["--inputs", text]));

  it("are collected, with or without a name, whatever characters a path has", () => {
    expect(input("T0=a,b.npy", "w.safetensors", "./a=b.safetensors")).toEqual([
      { name: "T0", file: "a,b.npy" },
      { name: null, file: "w.safetensors" },
      { name: null, file: "./a=b.safetensors" },
    ]);
    expect(input()).toEqual([]);
  });
  it.each(["", "T0="])("refuse --inputs %j", (text) => {
    expect(messageOf(() => input(text))).toContain("write it like --inputs T0=x.npy");
  });
});

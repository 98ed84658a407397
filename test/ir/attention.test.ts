/** Calls of sdpa: shapes, dtypes and diagnostics, and dumps. */
import { describe, expect, it } from "vitest";
import {
  add,
  type DType,
  Fusion,
  gradients,
  iota,
  lower,
  mul,
  ne,
  parse,
  print,
  sdpa,
  type SdpaMasks,
  type SdpaOptions,
  sum,
  Tensor,
  type TensorView,
} from "@braid-compiler/braid";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { diagnosticOf } from "./expect-diagnostic.ts";

type Shapes = readonly [readonly (number | null)[], readonly (number | null)[], readonly (number | null)[]];

function call([q, k, v]: Shapes, options: SdpaOptions = {}, dtype: "float" | "half" | "double" = "half") {
  const f = new Fusion();
  const inputs: readonly [TensorView, TensorView, TensorView] = [
    f.input(q, dtype),
    f.input(k, dtype),
    f.input(v, dtype),
  ];
  return { f, inputs, ...sdpa(...inputs, options) };
}

function expectDiagnostic(build: () => unknown, code: string, message: string): void {
  const found = diagnosticOf(build);
  expect(found.code).toBe(code);
  expect(found.message).toContain(message);
}

describe("sdpa", () => {
  it("gives the output and the statistics of each row", () => {
    const { output, logsumexp } = call([
      [2, 3, 4, 5, 8],
      [2, 3, 1, 7, 8],
      [2, 3, 1, 7, 6],
    ]);
    expect([output, logsumexp].map(String)).toEqual([
      "T3_g___half[iS15{2}, iS16{3}, iS17{4}, iS18{5}, iS19{6}]",
      "T4_g_float[iS20{2}, iS21{3}, iS22{4}, iS23{5}]",
    ]);
    expect(call([[2, 3], [4, 3], [4, 3]], {}, "double").logsumexp.dtype).toBe("double"); // prettier-ignore
  });

  it.each<readonly [string, Shapes]>([
    [
      "q and k have heads of different sizes",
      [
        [4, 8],
        [4, 6],
        [4, 8],
      ],
    ],
    [
      "k and v have different numbers of rows",
      [
        [4, 8],
        [5, 8],
        [4, 8],
      ],
    ],
    [
      "q, k and v differ along axis 0",
      [
        [4, 4, 8],
        [2, 4, 8],
        [2, 4, 8],
      ],
    ],
    [
      "q, k and v differ along axis 1",
      [
        [4, 4, 4, 8],
        [4, 4, 4, 8],
        [4, 1, 4, 8],
      ],
    ],
    [
      "q, k and v have different numbers of axes, or fewer than two",
      [
        [4, 8],
        [1, 4, 8],
        [1, 4, 8],
      ],
    ],
  ])("%s", (message, shapes) => {
    // prettier-ignore
    expectDiagnostic(() => call(shapes), "shape-mismatch", message);
  });

  it("refuses integers, other masks and scales", () => {
    const f = new Fusion();
    const x = f.input([4, 4], "int");
    expectDiagnostic(() => sdpa(x, x, x), "dtype-mismatch", "sdpa of a tensor that is not floating-point");
    const shapes: Shapes = [[4, 4], [4, 4], [4, 4]]; // prettier-ignore
    expectDiagnostic(
      () => call(shapes, { causal: "left" as "topLeft" }),
      "bad-argument",
      "causal is not a kind of mask",
    );
    expectDiagnostic(
      () => call(shapes, { scale: NaN }),
      "bad-argument",
      "the scale of attention is not a finite number",
    );
  });

  it("refuses a dropout that is none, before it adds any op", () => {
    const { f, inputs } = call([[4, 4], [4, 4], [4, 4]]); // prettier-ignore
    const seed = f.input([], "int64");
    const before = f.data();
    for (const dropout of [
      { p: 2, seed },
      { p: 0.5, seed: inputs[0] },
    ]) {
      const refused = diagnosticOf(() => sdpa(...inputs, { dropout }));
      expect(refused.place).toMatchObject({ text: "sdpa(T0, T1, T2)" });
    }
    expect(f.data()).toBe(before);
  });

  it("refuses a derivative of logsumexp", () => {
    const { f, inputs, logsumexp } = call([[4, 4], [4, 4], [4, 4]], {}, "float"); // prettier-ignore
    const of = [sum(logsumexp, [0])];
    expectDiagnostic(() => gradients(f, { of, wrt: [inputs[0]] }), "not-differentiable", "T4");
  });
});

/** Attention of 3 queries and 5 keys with a mask of its own dtype. */
function masked(own: DType, dtype: DType): { readonly f: Fusion; readonly output: TensorView } {
  const f = new Fusion();
  const [q, k] = [f.input([2, 3, 8], dtype), f.input([2, 5, 8], dtype)];
  return { f, output: sdpa(q, k, k, { mask: f.input([3, 5], own) }).output };
}

describe("dumps", () => {
  const { f, output, logsumexp } = call([[2, 4, 8], [2, 4, 8], [2, 4, 8]], { causal: "topLeft", scale: 0.5 }); // prettier-ignore
  f.output(output);
  f.output(logsumexp);
  const text = print(lower(f));

  it("have nvFuser's form", () => {
    expect(text).toContain(
      [
        "  T3_g___half[iS9{2}, iS10{4}, iS11{8}],",
        "  T4_g_float[iS12{2}, iS13{4}]",
        "     = sdpa(T0_g___half[iS0{2}, iS1{4}, iS2{8}],",
        "            T1_g___half[iS3{2}, iS4{4}, iS5{8}],",
        "            T2_g___half[iS6{2}, iS7{4}, iS8{8}],",
        "            is_causal = true, scale = double(0.5))",
      ].join("\n"),
    );
  });

  it("have what is added to the scores", () => {
    const { f: own, output: added } = masked("float", "float");
    own.output(added);
    expect(own.data().ops.map(({ kind }) => kind)).toEqual(["Broadcast", "Sdpa"]);
    const biased = print(lower(own));
    expect(print(parse(biased))).toBe(biased);
    // Its last axis is that of the keys.
    expect(biased).toContain("iS10{5}");
    expect(() => parse(biased.replaceAll("iS10{5}", "iS10{4}"))).toThrow("the mask of attention has other axes");
  });

  it("have gradients by one kernel, unless the mask has rows, which devices may have", () => {
    const kinds = (mask: readonly number[], options: SdpaOptions = {}): readonly string[] => {
      const f = new Fusion();
      const wrt = [f.input([2, 3, 8]), f.input([2, 5, 8]), f.input([2, 5, 8])] as const;
      const { output } = sdpa(...wrt, { ...options, mask: f.input(mask) });
      f.output(output);
      const cotangents = [f.input([2, 3, 8])];
      for (const each of gradients(f, { of: [output], cotangents, wrt })) if (each !== null) f.output(each);
      return f.data().ops.flatMap(({ kind }) => (kind.startsWith("Sdpa") ? [kind] : []));
    };
    expect(kinds([2, 1, 5])).toEqual(["Sdpa", "SdpaBackward"]);
    expect(kinds([3, 5], { causal: "topLeft" })).toEqual(["Sdpa", "SdpaBackward"]);
    expect(kinds([3, 5])).toEqual(["Sdpa"]);
  });

  it.each([
    ["float", "double", 1],
    ["bfloat16", "half", 1],
    ["float", "bfloat16", 1],
    ["double", "half", 0],
    ["half", "float", 1],
    ["bool", "half", 1],
    ["double", "float", 0],
  ] as const)("add a mask of %s to scores of %s: %i op", (own, dtype, count) => {
    expect(
      masked(own, dtype)
        .f.data()
        .ops.filter(({ kind }) => kind === "Sdpa"),
    ).toHaveLength(count);
  });

  it("have the window", () => {
    const { f: own, output: seen } = call([[4, 8], [4, 8], [4, 8]], { causal: "topLeft", window: 3 }); // prettier-ignore
    own.output(seen);
    const windowed = print(lower(own));
    expect(windowed).toContain("is_causal = true, window = 3)");
    expect(print(parse(windowed))).toBe(windowed);
    expect(() => parse(windowed.replace("window = 3", "window = 0"))).toThrow("at least one key");
    expect(() => parse(windowed.replace("is_causal = true", "is_causal = false"))).toThrow("scale");
  });

  it.each([
    ["is_causal = true", "is_causal = maybe", "true, false or bottomRight"],
    ["T4_g_float[iS12{2}, iS13{4}]\n     =", "7\n     =", "another output of the op"],
    ["T3_g___half[iS9{2}, iS10{4}, iS11{8}],\n  ", "", "Sdpa has the wrong number of outputs"],
  ])("with %j as %j are refused", (from, to, message) => {
    expect(() => parse(text.replace(from, to))).toThrow(message);
  });
});

describe("what a row sees", () => {
  const [queries, keys, size] = [3, 5, 2];
  const values = (count: number, from: number): readonly number[] =>
    Array.from({ length: count }, (_, i) => Math.sin(from + 1.7 * i));
  const [q, k, v] = [values(2 * queries * size, 0), values(2 * keys * size, 1), values(2 * keys * size, 2)];

  /** Attention by its definition, of batch 2. `score` is -Infinity for keys that are not seen. */
  function expected(score: (plain: number, b: number, i: number, j: number) => number): readonly number[] {
    const dot = (b: number, i: number, j: number): number =>
      [0, 1].reduce((sum, c) => sum + (q[(b * queries + i) * size + c] ?? 0) * (k[(b * keys + j) * size + c] ?? 0), 0);
    return [0, 1].flatMap((b) =>
      Array.from({ length: queries }, (_, i) => i).flatMap((i) => {
        const powers = Array.from({ length: keys }, (_, j) => Math.exp(score(dot(b, i, j) / Math.SQRT2, b, i, j)));
        const total = powers.reduce((a, x) => a + x, 0);
        return [0, 1].map((c) => {
          const sum = powers.reduce((a, p, j) => a + p * (v[(b * keys + j) * size + c] ?? 0), 0);
          return total === 0 ? 0 : sum / total;
        });
      }),
    );
  }

  const hidden = (isSeen: boolean, score: number): number => (isSeen ? score : -Infinity);
  const lengths = [4, 2];
  const bias = values(queries * keys, 3);
  const isOpen = (i: number, j: number): boolean => i !== 1 && (i + j) % 2 === 0;
  const lengthsIn = (f: Fusion): TensorView => add(mul(iota(f, 2), -2), 4);

  it.each<readonly [string, (f: Fusion, bias: TensorView) => SdpaOptions & SdpaMasks, Parameters<typeof expected>[0]]>([
    [
      "a bool mask, with a row that sees no key",
      (_, given) => ({ mask: ne(mul(given, 0), given) }),
      (s, _b, i, j) => hidden(isOpen(i, j), s),
    ],
    ["a mask that is added", (_, given) => ({ mask: given }), (s, _b, i, j) => s + (bias[i * keys + j] ?? 0)],
    ["lengths", (f) => ({ keyLengths: lengthsIn(f) }), (s, b, _i, j) => hidden(j < (lengths[b] ?? 0), s)],
    [
      "lengths and a triangle to the last key",
      (f) => ({ keyLengths: lengthsIn(f), causal: "bottomRight" }),
      (s, b, i, j) => hidden(j <= i - queries + (lengths[b] ?? 0), s),
    ],
    [
      "lengths and a triangle from the first",
      (f) => ({ keyLengths: lengthsIn(f), causal: "topLeft" }),
      (s, b, i, j) => hidden(j <= i && j < (lengths[b] ?? 0), s),
    ],
    [
      "a window from the first key",
      () => ({ causal: "topLeft", window: 2 }),
      (s, _b, i, j) => hidden(j <= i && j > i - 2, s),
    ],
    [
      "a window, and a mask that is added",
      (_, given) => ({ mask: given, causal: "topLeft", window: 2 }),
      (s, _b, i, j) => hidden(j <= i && j > i - 2, s + (bias[i * keys + j] ?? 0)),
    ],
    [
      "lengths and a window to the last key",
      (f) => ({ keyLengths: lengthsIn(f), causal: "bottomRight", window: 2 }),
      (s, b, i, j) => {
        const last = i - queries + (lengths[b] ?? 0);
        return hidden(j <= last && j > last - 2, s);
      },
    ],
    ["a window", () => ({ causal: "bottomRight", window: 2 }), (s, _b, i, j) => hidden(j <= i + 2 && j > i, s)],
    ["capped scores", () => ({ softCap: 0.5 }), (s) => 0.5 * Math.tanh(s / 0.5)],
  ])("%s", (name, options, score) => {
    const f = new Fusion();
    const inputs = [
      f.input([2, queries, size], "double"),
      f.input([2, keys, size], "double"),
      f.input([2, keys, size], "double"),
    ] as const;
    const given = f.input([queries, keys], "double");
    f.output(sdpa(...inputs, options(f, given)).output);
    const mask = name.startsWith("a bool")
      ? bias.map((_, at) => Number(isOpen(Math.floor(at / keys), at % keys)))
      : bias;
    const tensors = [q, k, v].map((each, i) => ({
      ...Tensor.zeros([2, i === 0 ? queries : keys, size], "double"),
      data: Float64Array.from(each),
    }));
    const { outputs } = evaluateFusion(f.data(), [
      ...tensors,
      { ...Tensor.zeros([queries, keys], "double"), data: Float64Array.from(mask) },
    ]);
    const found = Array.from(outputs[0]?.data ?? [], Number);
    const wanted = expected(score);
    expect(found).toHaveLength(wanted.length);
    found.forEach((x, i) => {
      expect(x).toBeCloseTo(wanted[i] ?? NaN, 12);
    });
  });

  it.each<readonly [string, string, (f: Fusion) => SdpaOptions & SdpaMasks]>([
    ["shape-mismatch", "mask", (f) => ({ mask: f.input([4, 5], "bool") })],
    ["dtype-mismatch", "mask", (f) => ({ mask: f.input([3, 5], "int") })],
    ["foreign-tensor", "another Fusion", () => ({ mask: new Fusion().input([3, 5], "bool") })],
    ["shape-mismatch", "keyLengths", (f) => ({ keyLengths: f.input([3], "int") })],
    ["dtype-mismatch", "keyLengths", (f) => ({ keyLengths: f.input([2]) })],
    ["bad-argument", "window", () => ({ window: 2 })],
    ["bad-argument", "window", () => ({ window: 0, causal: "topLeft" })],
    ["bad-argument", "window", () => ({ window: 1.5, causal: "bottomRight" })],
    ["bad-argument", "softCap", () => ({ softCap: -1 })],
  ])("%s: %s", (code, message, options) => {
    const f = new Fusion();
    const inputs = [f.input([2, 3, 8]), f.input([2, 5, 8]), f.input([2, 5, 8])] as const;
    expectDiagnostic(() => sdpa(...inputs, options(f)), code, message);
  });
});

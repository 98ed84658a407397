/** Calls of sdpa: shapes, dtypes and diagnostics, and dumps. */
import { describe, expect, it } from "vitest";
import {
  Fusion,
  gradients,
  lower,
  parse,
  print,
  sdpa,
  type SdpaOptions,
  sum,
  type TensorView,
} from "@braid-compiler/braid";
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

  it.each([
    ["is_causal = true", "is_causal = maybe", "true, false or bottomRight"],
    ["T4_g_float[iS12{2}, iS13{4}]\n     =", "7\n     =", "another output of the op"],
    ["T3_g___half[iS9{2}, iS10{4}, iS11{8}],\n  ", "", "Sdpa has the wrong number of outputs"],
  ])("with %j as %j are refused", (from, to, message) => {
    expect(() => parse(text.replace(from, to))).toThrow(message);
  });
});

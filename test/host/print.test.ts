/** Printing beyond the dumps: styles, host units, the other statements, index definitions, one-line texts. */
import { describe, expect, it } from "vitest";
import { abs, DeviceMesh, Fusion, HostProgramBuilder, print, sum } from "@braid-compiler/braid";
import { printFusion } from "@braid-compiler/braid/internals";
import { createStatementText } from "../../src/host/print/print.ts";
import { walk } from "../../src/host/traverse.ts";

const mesh = DeviceMesh.range(2);

describe("styles", () => {
  const pipeline = (): ReturnType<HostProgramBuilder["build"]> => {
    const h = new HostProgramBuilder();
    const x = h.tensor([4, 2], { mesh, parallel: ["Stream"] });
    h.output(x);
    h.forLoop({ over: x.axis(0) }, (i) => {
      const slice = h.select(x, 0, h.scalars.add(i, h.scalars.rank));
      h.ifThenElse(h.scalars.eq(i, h.scalars.rank), () => h.set(slice, { out: slice }));
    });
    return h.build();
  };

  it("2025-04 spells StreamIdx and prints no mesh of slices", () => {
    const text = print(pipeline(), { style: "2025-04" });
    expect(text).toContain("FOR StreamIdx in iStreamIdx0{4}:");
    expect(text).toContain("IF Manual ( StreamIdx == deviceIdx.x ):");
    expect(text).toContain("T1_l_float[iS2{2}]\n");
    expect(text).toContain("HirAliasSelect( T0_g_float[iStreamIdx0{4}, iS1{2}] (DeviceMesh{0 1}), ");
    expect(text).not.toContain("Index definitions");
  });

  it("2025-05 prints the mesh of slices", () => {
    const text = print(pipeline(), { style: "2025-05" });
    expect(text).toContain("FOR StreamIdx in iStreamIdx0{4}:");
    expect(text).toContain("T1_l_float[iS2{2}] (DeviceMesh{0 1})\n");
  });

  it("2025-10, the default, spells streamIdx and rank and defines indices", () => {
    const text = print(pipeline());
    expect(text).toBe(print(pipeline(), { style: "2025-10" }));
    expect(text).toContain("IF Manual ( streamIdx == rank ):");
    expect(text).toMatch(/\} \/\/ %HostIrContainer\n\nIndex definitions:\n {2}i0 = streamIdx \+ rank;\n$/u);
  });

  it("shows index definitions as asked", () => {
    expect(print(pipeline(), { indexDefinitions: false })).not.toContain("Index definitions");
    expect(print(pipeline(), { style: "2025-05", indexDefinitions: true })).toContain("i0 = StreamIdx + deviceIdx.x;");
  });
});

it("begins and ends with an empty line, and leaves empty scopes out but for their headers", () => {
  const h = new HostProgramBuilder();
  h.ifThenElse(h.scalars.rank, () => {});
  h.forLoop(0, () => {});
  expect(print(h.build())).toBe(
    "\n%HostIrContainer { () -> () :\n  IF Manual rank:\n  FOR i0 from 0 to 0:\n} // %HostIrContainer\n",
  );
});

it("prints host units after the statements, each with its kernel", () => {
  const f = new Fusion();
  f.output(sum(abs(f.input([2, 3])), [1]));
  const h = new HostProgramBuilder();
  const [y] = h.postOnStream(f, [h.input([2, 3])]);
  if (y !== undefined) h.output(y);
  expect(print(h.build())).toBe(`
%HostIrContainer { (T0_g_float[iS0{2}, iS1{3}]) -> (T1_g_float[iS2{2}]) :
  PostOnStream (HostUnit0, Inputs:{T0_g_float[iS0{2}, iS1{3}], }, Outputs:{T1_g_float[iS2{2}], })

HostUnit0: Inputs={T0_g_float[iS0{2}, iS1{3}], } -> Outputs={T2_g_float[iS4{2}, rS5{3}], }Inputs:
  T0_g_float[iS0{2}, iS1{3}]
Outputs:
  T2_g_float[iS4{2}, rS5{3}]

%kernel {
T1_g_float[iS2{2}, iS3{3}]
   = abs(T0_g_float[iS0{2}, iS1{3}]);
T2_g_float[iS4{2}, rS5{3}]
   = reduction( T1_g_float[iS2{2}, iS3{3}], op = add, initial value = float(0), allreduce = false )
} // %kernel
} // %HostIrContainer
`);
  expect(printFusion(f.data())).toContain("%kernel {\nT1_g_float[iS2{2}, iS3{3}]\n   = abs(");
});

it("aligns what a nested statement breaks onto further lines", () => {
  const h = new HostProgramBuilder();
  const [a, b, c] = [h.input([2, 2]), h.input([2, 2]), h.input([2])];
  const [sumOut, out] = [h.tensor([2, 2]), h.tensor([2, 2, { reduced: 2 }])];
  h.forLoop(1, () => {
    h.add(a, b, { out: sumOut });
    h.matmul(a, b, { out });
    h.linear(a, b, c, { out });
    h.deallocate(out);
  });
  const [A, B, C] = [String(a), String(b), String(c)];
  expect(print(h.build()).split("\n").slice(2, -2)).toEqual([
    "  FOR i6 from 0 to 1:",
    `    ${String(sumOut)}`,
    `       = ${A}`,
    `       + ${B};`,
    `    ${String(out)}`,
    `       = matmul(${A},`,
    `                ${B})`,
    `    ${String(out)}`,
    `       = linear(${A},`,
    `                ${B}      ,`,
    `          ${C}      )`,
    "    Deallocate {",
    `      ${String(out)}`,
    "    }",
  ]);
});

it("prints reductions of integers with integer initial values", () => {
  const h = new HostProgramBuilder();
  const x = h.input([2], { dtype: "int" });
  h.sum(x, [0]);
  h.prod(x, [0]);
  expect(print(h.build()).match(/initial value = \S+/gu)).toEqual(["initial value = 0,", "initial value = 1,"]);
});

it("has a text on one line for every statement, without scopes", () => {
  const h = new HostProgramBuilder();
  const x = h.input([2, 2]);
  const y = h.tensor([2]);
  h.forLoop(2, (i) => {
    h.ifThenElse(1, () => h.set(h.select(x, 0, i), { out: y }));
    h.deallocate(y);
  });
  const program = h.build();
  expect([...walk(program.body)].map(createStatementText(program))).toEqual([
    "FOR i3 from 0 to 2:",
    "IF Manual 1:",
    "T2_l_float[iS3{2}] = HirAliasSelect( T0_g_float[iS0{2}, iS1{2}], axis = iS0{2}, index = i3 )",
    "T1_g_float[iS2{2}] = Set( T2_l_float[iS3{2}], cache_op=Streaming )",
    "Deallocate { T1_g_float[iS2{2}] }",
  ]);
});

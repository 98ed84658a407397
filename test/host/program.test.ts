/** program(defaults, build): parameters, devices, and recognition without instanceof. */
import { describe, expect, expectTypeOf, it } from "vitest";
import { Fusion, isFusion } from "../../src/ir/api/fusion.ts";
import { set } from "../../src/ir/api/ops.ts";
import { isProgramFile, program } from "../../src/host/program-file.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import { diagnosticOf } from "../ir/expect-diagnostic.ts";

const rows = program({ M: 8, N: 4 }, ({ devices, params }) => {
  const f = new Fusion();
  f.output(set(f.input([devices, params.M, params.N])));
  return f;
});

describe("program", () => {
  it("builds with its defaults, or with other values for some", () => {
    expect(rows.defaults).toEqual({ M: 8, N: 4 });
    expect(String(rows.build({ devices: 2 }).inputs[0])).toBe("T0_g_float[iS0{2}, iS1{8}, iS2{4}]");
    expect(String(rows.build({ devices: 1, params: { N: 5 } }).inputs[0])).toBe("T0_g_float[iS0{1}, iS1{8}, iS2{5}]");
    expect(rows.build({ devices: 2 })).not.toBe(rows.build({ devices: 2 }));
  });

  it("is recognised by its marker, as a Fusion is", () => {
    expect(isProgramFile(rows)).toBe(true);
    const marked = { [Symbol.for("braid.program")]: true };
    expect(isProgramFile({ ...marked, defaults: { M: 4 }, build: () => null })).toBe(true);
    expect(isProgramFile(marked)).toBe(false);
    expect(isProgramFile({ ...marked, defaults: { M: null }, build: () => null })).toBe(false);
    expect(isFusion(rows.build({ devices: 1 }))).toBe(true);
    for (const other of [null, undefined, 3, "x", {}, new Fusion()]) expect(isProgramFile(other)).toBe(false);
    for (const other of [null, undefined, {}, rows]) expect(isFusion(other)).toBe(false);
  });

  it.each([0, -1, 1.5, NaN])("refuses %d devices", (devices) => {
    expect(diagnosticOf(() => rows.build({ devices }))).toMatchObject({ code: "device-count", found: String(devices) });
  });

  it("refuses unknown parameters and values that are no numbers", () => {
    const unknown = { M: 1, Q: 3 };
    expect(diagnosticOf(() => rows.build({ devices: 1, params: unknown }))).toMatchObject({
      code: "option-unknown",
      found: "Q",
      expected: "one of M, N",
    });
    expect(diagnosticOf(() => rows.build({ devices: 1, params: { M: NaN } }))).toMatchObject({
      code: "option-value",
      found: "NaN",
    });
    expect(diagnosticOf(() => program({ M: Infinity }, () => new Fusion())).code).toBe("option-value");
  });

  it("takes a dtype where the default is one, typed as a dtype", () => {
    const typed = program({ dtype: "float", M: 2 }, ({ params }) => {
      expectTypeOf(params).toEqualTypeOf<Readonly<{ dtype: DType; M: number }>>();
      const f = new Fusion();
      f.output(set(f.input([params.M], params.dtype)));
      return f;
    });
    const build = (params: object): Fusion => typed.build({ devices: 1, params });
    expect(String(build({}).inputs[0])).toBe("T0_g_float[iS0{2}]");
    expect(String(build({ dtype: "bfloat16" }).inputs[0])).toBe("T0_g___bfloat[iS0{2}]");
    const dtypes = "a dtype: double, float, half, bfloat16, float8_e4m3fn, float8_e5m2, int, int64, bool";
    for (const dtype of ["bf16", 3]) {
      expect(diagnosticOf(() => build({ dtype }))).toMatchObject({
        code: "option-value",
        message: "parameter dtype is not a dtype",
        found: String(dtype),
        expected: dtypes,
      });
    }
    expect(diagnosticOf(() => build({ M: "half" }))).toMatchObject({ found: "half", expected: "a finite number" });
    const bad: unknown = { dtype: "bf16" };
    expect(diagnosticOf(() => Reflect.apply(program, undefined, [bad, build])).expected).toBe(
      `a finite number, or ${dtypes}`,
    );
  });

  it("refuses a build function that returns no Fusion", () => {
    const build: (...args: never[]) => unknown = () => 7;
    const broken: unknown = Reflect.apply(program, undefined, [{}, build]);
    if (!isProgramFile(broken)) throw new Error("program() returns a program");
    expect(diagnosticOf(() => broken.build({ devices: 1 }))).toMatchObject({
      code: "program-invalid",
      found: "number",
    });
  });

  it("lets the diagnostics of the build function through", () => {
    expect(diagnosticOf(() => rows.build({ devices: 1, params: { M: 2.5 } })).code).toBe("bad-extent");
  });
});

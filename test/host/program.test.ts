/** program(defaults, build): parameters, devices, and recognition without instanceof. */
import { describe, expect, it } from "vitest";
import { Fusion, isFusion } from "../../src/ir/api/fusion.ts";
import { set } from "../../src/ir/api/ops.ts";
import { isProgramFile, program } from "../../src/host/program-file.ts";
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
    expect(isProgramFile({ [Symbol.for("braid.program")]: true })).toBe(true);
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

/**
 * Dumps of 2024 and early 2025: those of before September 2024 are refused by their era, later ones are read. The advice
 * for what a dump does not say is followed as printed.
 */
import { describe, expect, it } from "vitest";
import { broadcast, compile, expand, Fusion, MultiDeviceExecutor, parse, print, sum, Tensor } from "braid";
import { walk } from "../../../src/host/traverse.ts";
import { dumpText } from "./dump-cases.ts";

it.each(["draft-gather.hir", "e0-matmul-reduce-scatter.hir"])("%s is refused by its era", (file) => {
  expect(() => parse(dumpText(file))).toThrow(
    /before September 2024[^]*fix: print the program with nvFuser from 2024-09/u,
  );
});

describe("a dump without backends", () => {
  const file = "e0-allgather-linear.hir";

  it("is one of NCCL's", () => {
    const communications = walk(parse(dumpText(file)).body).filter(({ kind }) => kind === "Communication");
    expect(communications).toMatchObject([{ type: "Allgather", backend: "nccl" }]);
  });

  it("has the fault of its time: the loop's streams do not wait for the caller's", () => {
    const sizes = { i0: 2, i3: 3, i4: 5, i5: 4, i6: 5, i7: 4 };
    const { findings } = compile(parse(dumpText(file)), { devices: 8, sizes }).report;
    expect(new Set(findings.map(({ code }) => code))).toEqual(new Set(["data-race", "used-before-alloc"]));
  });
});

describe("a unit without lists, whose permutes do not show their order", () => {
  const text = dumpText("e0-gather.hir");

  it("is read with the domains that the message asks for, where it asks for them", () => {
    expect(() => parse(text)).toThrow(
      /T4 does not show how T1 is permuted[^]*fix: write its domains under "TransformPrinter :"/u,
    );
    const domains = [
      "TransformPrinter :",
      "T4_g_float[ideviceIdx.x15{3}, iS14{3}, iS16{3}] (DeviceMesh{0 2 3})",
      " root domain : (iS14{3}, ideviceIdx.x15{3}, iS16{3})",
      " logical domain : (ideviceIdx.x15{3}, iS14{3}, iS16{3})",
      " loop domain : (ideviceIdx.x15{3}, iS14{3}, iS16{3})",
      "} // %kernel\n} // %HostIrContainer",
    ].join("\n");
    const host = parse(text.replace("} // %kernel\n} // %HostIrContainer", domains));
    const kinds = host.units.map(({ fusion }) => fusion.ops.map(({ kind }) => kind));
    expect(kinds.filter(({ length }) => length > 0)).toEqual([
      ["Reduction", "Permute"],
      ["Permute", "Binary"],
    ]);
  });
});

describe("a stretched axis, as nvFuser prints it", () => {
  const lines = (op: string): string =>
    [
      "%HostIrContainer { (T0_g_float[iS0{2}]) -> (T3_g_float[iS5{4}, rS6{2}]) :",
      "  T1_l_float[bS1{1}, iS2{2}]",
      "     = broadcast( T0_g_float[iS0{2}], flags = {true, false} )",
      `  T2_l_float[bS3{1 ex 4}, iS4{2}] = ${op}`,
      "  T3_g_float[iS5{4}, rS6{2}]",
      "     = reduction( T2_l_float[bS3{1 ex 4}, iS4{2}], op = add, initial value = float(0), allreduce = false )",
      "} // %HostIrContainer",
    ].join("\n");
  const text = lines("expand( T1_l_float[bS1{1}, iS2{2}] )");

  it("has its whole extent, and the expand needs none", () => {
    const fused = (): Fusion => {
      const f = new Fusion();
      f.output(sum(expand(broadcast(f.input([2]), [true, false]), [4, 2]), [1]));
      return f;
    };
    const kinds = (host: ReturnType<typeof parse>): readonly string[] => walk(host.body).map(({ kind }) => kind);
    expect(kinds(parse(text))).toEqual(
      fused()
        .data()
        .ops.map(({ kind }) => kind),
    );
    expect(print(parse(text))).toContain(
      "T2_l_float[iS3{4}, iS4{2}]\n     = expand( T1_l_float[bS1{1}, iS2{2}], {4, 2} )",
    );
  });

  it("runs", async () => {
    const executor = await MultiDeviceExecutor.create(parse(text), { devices: 1 });
    const [y] = await executor.run([Tensor.from([1, 2], "float")]);
    expect(y).toMatchObject({ shape: [4], data: Float32Array.of(3, 3, 3, 3) });
    await executor.close();
  });

  it("contradicts an expand to other extents", () => {
    const other = lines("expand( T1_l_float[bS1{1}, iS2{2}], {5, 2} )");
    expect(() => parse(other)).toThrow("an expand does not have the extents of its output");
  });
});

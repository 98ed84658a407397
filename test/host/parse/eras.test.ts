/**
 * Dumps of 2024 and early 2025: those of before September 2024 are refused by their era, later ones are read. The advice
 * for what a dump does not say is followed as printed.
 */
import { describe, expect, it } from "vitest";
import {
  broadcast,
  compile,
  expand,
  Fusion,
  MultiDeviceExecutor,
  parse,
  print,
  sum,
  Tensor,
} from "@braid-compiler/braid";
import { walk } from "../../../src/host/traverse.ts";
import { dumpText } from "./dump-cases.ts";

it("draft-gather.hir is refused as a draft", () => {
  expect(() => parse(dumpText("draft-gather.hir"))).toThrow(
    /a draft of before September 2024[^]*fix: print the program with nvFuser from 2024-09/u,
  );
});

describe("a dump of before September 2024, without dtypes", () => {
  /** Rank 0 doubles, rank 1 squares what it gets. */
  const stages = [0, 1].map((rank) => {
    const unit = (number: number, from: number, to: number, sign: string): readonly string[] => [
      `HostUnit${number}: Inputs={T${from}_g[ iS${from}{6} ] (DeviceMesh{${rank}}), } -> Outputs={T${to}_g[ iS${to}{6} ] (DeviceMesh{${rank}}), }`,
      "%kernel {",
      `T${to}_g[ iS${to}{6} ] (DeviceMesh{${rank}})`,
      `   = T${from}_g[ iS${from}{6} ] (DeviceMesh{${rank}})`,
      `   ${sign} T${from}_g[ iS${from}{6} ] (DeviceMesh{${rank}});`,
      "} // %kernel",
    ];
    const post = (number: number, from: string, to: string): string =>
      `  PostOnStream (HostUnit${number}, Inputs:{${from} (DeviceMesh{${rank}}), }, Outputs:{${to} (DeviceMesh{${rank}}), })`;
    const send = [
      "  Communication 3 (type=Broadcast, team=(1 0), root=0, Input=T1_l[ iS1{6} ] (DeviceMesh{0}), Output=T2_l[ iS2{6} ] (DeviceMesh{1}))",
      "  Wait Communication 3",
    ];
    return [
      "%HostIrContainer { (T0_g[ iS0{6} ] (DeviceMesh{0})) -> (T3_g[ iS3{6} ] (DeviceMesh{1})) :",
      ...(rank === 0
        ? [post(0, "T0_g[ iS0{6} ]", "T1_l[ iS1{6} ]"), ...send, "", ...unit(0, 0, 1, "+")]
        : [...send, post(4, "T2_l[ iS2{6} ]", "T3_g[ iS3{6} ]"), "", ...unit(4, 2, 3, "*")]),
      "",
      "} // %HostIrContainer",
    ].join("\n");
  });

  it("is read in float, and its communications allocate what they write", async () => {
    const hosts = stages.map((text) => parse(text));
    expect(hosts[0]?.tensors.map(({ dtype }) => dtype)).toEqual(["float", "float", "float", "float"]);
    const { report } = compile(hosts, { devices: 2 });
    expect(report.findings.filter(({ severity }) => severity === "error")).toEqual([]);
    const executor = await MultiDeviceExecutor.create(hosts, { devices: 2 });
    const outputs = await executor.run([Tensor.from([0, 1, 2, 3, 4, 5], "float")]);
    await executor.close();
    expect(outputs.map((output) => Tensor.toArray(output))).toEqual([[0, 4, 16, 36, 64, 100]]);
  });

  it("has tensors without a mesh on all devices", () => {
    const sizes = { i0: 3, i2: 8, i3: 3, i4: 3, i5: 5, i6: 3, i7: 1, i8: 5 };
    const host = parse(dumpText("e0-matmul-reduce-scatter.hir"));
    expect(new Set(host.tensors.map(({ mesh }) => String(mesh?.devices)))).toEqual(new Set(["0,1,2,3,4,5,6,7"]));
    // Its streams run one after the other: nothing in it says which stream it runs on.
    const { findings } = compile(host, { devices: 8, sizes }).report;
    expect(findings.filter(({ severity }) => severity === "error")).toEqual([]);
  });

  it("may name its streams by a remainder of its own", () => {
    const axes = "T1_g[ iS2{4}, iS3{5} ]";
    const text = [
      `%HostIrContainer { (T0_g[ iS0{4}, iS1{5} ], ${axes}) -> (${axes}) :`,
      "  FOR i5 in iS2{4}:",
      "    SetCurrentStream to Stream ( i5 % 3 )",
      "    T2_l[ iS4{5} ]",
      "      = select( T0_g[ iS0{4}, iS1{5} ], axis = iS0{4}, index = i5 )",
      "    T4_l[ iS6{5} ]",
      `      = select( ${axes}, axis = iS2{4}, index = i5 )`,
      "    PostOnStream (HostUnit7, Inputs:{T2_l[ iS4{5} ], }, Outputs:{T4_l[ iS6{5} ], })",
      "",
      "HostUnit7: Inputs={T2_g[ iS4{5} ], } -> Outputs={T4_g[ iS6{5} ], }",
      "%kernel {",
      "T4_g[ iS6{5} ]",
      "   = sin(T2_g[ iS4{5} ]);",
      "} // %kernel",
      "} // %HostIrContainer",
    ];
    expect(walk(parse(text.join("\n")).body).map(({ kind }) => kind)).toEqual([
      "ForLoop",
      "SetCurrentStream",
      "Select",
      "Select",
      "PostOnStream",
    ]);
    const unit = text.findIndex((line) => line.startsWith("HostUnit7"));
    expect(() => parse([...text.slice(0, unit), "HostUnit7: [...]", text.at(-1)].join("\n"))).toThrow(
      /the body of HostUnit7 is left out/u,
    );
  });
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

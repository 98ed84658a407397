/**
 * Kernels of ops that Braid does not know: a HostUnit with one, and LaunchKernel, which launches what nvFuser compiled.
 * They are verified by what they print as inputs and outputs. Only running them is refused.
 */
import { describe, expect, it } from "vitest";
import { compile, MultiDeviceExecutor, parse, print, Tensor } from "@braid-compiler/braid";
import { dumpText } from "./dump-cases.ts";

const unit = "written/host-unit.hir";
const sizes = { i0: 3, i2: 4, i3: 4, i4: 3 };

const kernels: readonly (readonly [op: string, from: string | RegExp, to: string])[] = [
  ["lgammaf", "expf(", "lgammaf("],
  ["*", /\* T6_l_float\[.*\];/u, "* d4;"],
  ["%", "   * T6", "   % T6"],
  ["where", /= -T3_l_float\[.*\];/u, "= where(b3, T3_l_float[iS6{i0}, iS7{i2}], double(0));"],
];

describe.each(kernels)("a HostUnit with %s", (op, from, to) => {
  const text = dumpText(unit).replace(from, () => to);

  it("prints back", () => {
    const kernel = (dump: string): string => dump.slice(dump.indexOf("%kernel {"));
    expect(kernel(print(parse(text))).trim()).toBe(kernel(text).trim());
    expect(print(parse(print(parse(text))))).toBe(print(parse(text)));
  });

  it("is verified", () => {
    expect(compile(parse(text), { devices: 1, sizes }).report.findings).toEqual([]);
  });

  it("is not run", async () => {
    const executor = await MultiDeviceExecutor.create(parse(text), { devices: 1 });
    const inputs = [Tensor.zeros([3, 4], "bfloat16"), Tensor.zeros([4, 3], "bfloat16")];
    await expect(executor.run(inputs)).rejects.toThrow(`${op} in HostUnit0 cannot be run`);
    await executor.close();
  });
});

const [x, y, z] = ["T0_g_float[iS0{4}, iS1{8}]", "T1_g_float[iS2{4}, iS3{8}]", "T2_g_float[iS4{4}, iS5{8}]"];

/** Kernel 0 on the first worker, and kernel 1, which reads its output, on the second. */
function launches(between: readonly string[]): string {
  const allocate = (name: string): string =>
    `  ${name} = ALLOCATE(buffer=${name}, mem_type=global, size=32, zero_init=false, resets_to_zero=false)`;
  const launch = (group: number, inputs: string, output: string): readonly string[] => [
    "  LaunchKernel(",
    `    Group ID: ${group},`,
    `    Inputs: {${inputs}},`,
    `    Outputs: {${output}},`,
    "  )",
  ];
  return [
    `%HostIrContainer { (${x}) -> (${z}) :`,
    ...[y, z].map(allocate),
    "  GetCurrentStream into Stream 0",
    "  SetCurrentStream to Stream ( 0 )",
    "  Synchronize Stream 0",
    ...launch(0, `${x}, i7`, y),
    "  SetCurrentStream to Stream ( 1 )",
    "  Synchronize Stream 0",
    ...between,
    ...launch(1, `${x}, ${y}`, z),
    "  SetCurrentStream to Stream 0",
    "  Synchronize Stream ( 0 )",
    "  Synchronize Stream ( 1 )",
    "} // %HostIrContainer",
  ].join("\n");
}

describe("LaunchKernel", () => {
  const ordered = launches(["  Synchronize Stream ( 0 )"]);

  it("prints back", () => {
    expect(print(parse(ordered)).trim()).toBe(ordered);
  });

  it("is verified by its inputs and outputs", () => {
    expect(compile(parse(ordered), { devices: 1 }).report.findings).toEqual([]);
    const { report } = compile(parse(launches([])), { devices: 1 });
    expect(report.findings).toMatchObject([
      { code: "data-race", message: "a write and a read of T1 on rank 0 have no order" },
    ]);
  });

  it("needs memory for its outputs", () => {
    const lines = ordered.split("\n").filter((line) => !line.startsWith("  T1_g"));
    expect(() => compile(parse(lines.join("\n")), { devices: 1 })).toThrow("error[not-bound]: T1 is used on rank 0");
  });

  it("is not run", async () => {
    const executor = await MultiDeviceExecutor.create(parse(ordered), { devices: 1 });
    await expect(executor.run([Tensor.zeros([4, 8])])).rejects.toThrow("LaunchKernel of group 0 cannot be run");
    await executor.close();
  });
});

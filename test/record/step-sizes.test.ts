/** Sizes that a dump leaves open, and that its ops do not have. */
import { expect, it } from "vitest";
import { parse, record } from "@braid-compiler/braid";
import { diagnosticOf } from "../ir/expect-diagnostic.ts";

const container = (inputs: string, output: string, op: string): string =>
  [
    `%HostIrContainer { (${inputs}) -> (${output}) :`,
    `  ${output}`,
    `     = ${op}`,
    "",
    "} // %HostIrContainer",
    "",
  ].join("\n");

const [x, y] = ["T0_g_float[iS0{i0}]", "T1_g_float[iS1{i2}]"];
const index = "T1_g_int64_t[iS1{i2}]";

it.each([
  ["cat", container(`${x}, ${y}`, "T2_g_float[iS2{i3}]", `cat( ${x}, ${y}, 0 )`)],
  ["pad", container(x, "T2_g_float[iS2{i3}]", `pad( ${x}, {1, 0} )`)],
  ["index_select", container(`${x}, ${index}`, "T2_g_float[iS2{i3}]", `index_select( ${x}, dim = 0, ${index} )`)],
])("%s", (_, text) => {
  expect(diagnosticOf(() => record(parse(text), { rank: 0, sizes: { i0: 4, i2: 3, i3: 2 } }))).toMatchObject({
    code: "size-mismatch",
  });
});

/** `Aliases:` before 2025-05: tensors that are written in the memory of another. */
import { expect, it } from "vitest";
import { MultiDeviceExecutor, parse, print, Tensor } from "@braid-compiler/braid";

const [x, y, z] = ["T0_g_float[iS0{4}]", "T1_g_float[iS1{4}]", "T2_g_float[iS2{4}]"];

/** Doubles three times, each time in place of the input. */
const container = (output: string, aliases: readonly string[]): string =>
  [
    `%HostIrContainer { (${x}) -> (${output}) :`,
    "  FOR i5 from 0 to 3:",
    `    ${output}`,
    `       = ${x}`,
    `       + ${x};`,
    "Aliases:{",
    ...aliases.map((alias) => `  ${alias}`),
    "}",
    "} // %HostIrContainer",
  ].join("\n");

it.each([
  ["in full", [`${y} -> ${x}`], y],
  ["by name", ["T1 -> T0"], y],
  ["of aliases", [`${z} -> ${y}`, `${y} -> ${x}`], z],
])("aliases %s share the memory", async (_, aliases, output) => {
  const executor = await MultiDeviceExecutor.create(parse(container(output, aliases)), { devices: 1 });
  const input = Tensor.zeros([4]);
  input.data.set([1, 2, 3, 4]);
  const [result] = await executor.run([input]);
  await executor.close();
  expect(result).toMatchObject({ data: Float32Array.of(8, 16, 24, 32) });
});

it("no aliases are an empty list", () => {
  const without = (text: string): string => print(parse(text.replace(/Aliases:\{\n\}\n/u, "")));
  expect(print(parse(container(y, [])))).toBe(without(container(y, [])));
});

it("a circle is refused", () => {
  expect(() => parse(container(y, ["T1 -> T0", "T0 -> T1"]))).toThrow("T0 has the memory of itself");
});

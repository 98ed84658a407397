/** Damaged and unsupported files: one diagnostic each, with line and column. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { type Diagnostic, DiagnosticError, importModel } from "@braid-compiler/braid";
import { at } from "../../src/support/invariant.ts";

const text = (name: string): string => readFileSync(path.join(import.meta.dirname, `jax/${name}.mlir`), "utf8");

async function refusal(model: string | Uint8Array, entry?: string): Promise<Diagnostic | null> {
  try {
    await importModel(model, { file: "model.mlir", ...(entry === undefined ? {} : { entry }) });
    return null;
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    expect(error.diagnostics).toHaveLength(1);
    return at(error.diagnostics, 0);
  }
}

/** `model-syntax at 3:5` */
function textOf(diagnostic: Diagnostic | null): string {
  const place = diagnostic?.place;
  if (place?.kind !== "file") return diagnostic === null ? "read" : `${diagnostic.code} without a place`;
  return `${diagnostic?.code} at ${place.line}:${place.column}`;
}

const small = `sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<4xf32>, %y: tensor<4xi32>) -> tensor<4xf32> {
  %0 = stablehlo.tanh %x : tensor<4xf32>
  %1 = func.call @f(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.abs %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
`;

const line3 = "%0 = stablehlo.tanh %x : tensor<4xf32>";

/** An edit of `small`, and what is said of it. */
const rows: readonly (readonly [name: string, from: string, to: string, said: string, message: RegExp])[] = [
  ["an unknown op", "tanh %x", "tanj %x", "model-unsupported at 3:8", /stablehlo.tanj is not supported/u],
  [
    "a custom call",
    line3,
    "%0 = stablehlo.custom_call @gemm(%x) : (tensor<4xf32>) -> tensor<4xf32>",
    "model-unsupported at 3:8",
    /custom_call @gemm/u,
  ],
  [
    "another type of an operand",
    "tanh %x : tensor<4xf32>",
    "tanh %x : tensor<5xf32>",
    "model-invalid at 3:8",
    /%x has another type/u,
  ],
  [
    "another type of a result",
    line3,
    "%0 = stablehlo.slice %x [0:2] : (tensor<4xf32>) -> tensor<3xf32>",
    "model-invalid at 3:8",
    /slice contradicts its types/u,
  ],
  [
    "operands of two types",
    line3,
    "%0 = stablehlo.add %x, %y : tensor<4xf32>",
    "model-invalid at 3:8",
    /contradicts its types/u,
  ],
  ["a value of no op", "tanh %x", "tanh %z", "model-invalid at 3:8", /reads a value that no op/u],
  ["a value without a name", "tanh %x", "tanh %", "model-syntax at 3:23", /cannot be read/u],
  [
    "a result without a name, in a line like another one",
    line3,
    `${line3}\n  ${line3.replace("%0", "%")}`,
    "model-syntax at 4:3",
    /cannot be read/u,
  ],
  ["too few operands", "tanh %x", "add %x", "model-invalid at 3:8", /too few operands/u],
  ["a dtype", "%y: tensor<4xi32>", "%y: tensor<4xf8E3M4>", "model-unsupported at 2:36", /a dtype/u],
  ["a dynamic extent", "%y: tensor<4xi32>", "%y: tensor<?xi32>", "model-unsupported at 2:36", /dynamic/u],
  ["a token", "%y: tensor<4xi32>", "%y: !stablehlo.token", "model-unsupported at 2:36", /not a tensor/u],
  ["an unknown function", "call @f", "call @g", "model-invalid at 4:8", /no function @g/u],
  [
    "a function that calls itself",
    "stablehlo.abs %x :",
    "func.call @f(%x) : (tensor<4xf32>) ->",
    "model-invalid at 7:1",
    /@f calls itself/u,
  ],
  ["two functions of one name", "private @f", "private @main", "model-syntax at 7:1", /cannot be read/u],
  [
    "an unknown mesh",
    "%x: tensor<4xf32>, %y",
    "%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{}]>}, %y",
    "model-invalid at 2:1",
    /no mesh @m/u,
  ],
  [
    "an unknown mesh axis",
    "%x: tensor<4xf32>, %y",
    '%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z"}]>}, %y',
    "model-invalid at 2:1",
    /an axis that its mesh does not have/u,
  ],
  [
    "a sharding of another rank",
    "%x: tensor<4xf32>, %y",
    "%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %y",
    "model-invalid at 2:1",
    /another rank/u,
  ],
  [
    "a mesh axis on two axes",
    line3,
    '%2 = stablehlo.reshape %x : (tensor<4xf32>) -> tensor<2x2xf32>\n%3 = sdy.reshard %2 <@mesh, [{"x"}, {"x"}]> : tensor<2x2xf32>\n%0 = stablehlo.tanh %x : tensor<4xf32>',
    "did-repeated at 4:6",
    /on two axes/u,
  ],
  [
    "a list of devices that is too short",
    `<["x"=2]>\nfunc.func @main(%x: tensor<4xf32>,`,
    `<["x"=2], device_ids=[0]>\nfunc.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},`,
    "model-invalid at 1:1",
    /another number of devices/u,
  ],
  [
    "a constant that is cut off",
    line3,
    "%0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<4xf32>",
    "model-invalid at 3:8",
    /do not fit its type/u,
  ],
  [
    "a loop without an end",
    line3,
    `%c = stablehlo.constant dense<true> : tensor<i1>
    %0 = stablehlo.while(%a = %x) : tensor<4xf32> cond { stablehlo.return %c : tensor<i1> } do { stablehlo.return %a : tensor<4xf32> }`,
    "model-unsupported at 4:10",
    /while/u,
  ],
  [
    "a scatter of two tensors",
    line3,
    `%i = stablehlo.constant dense<0> : tensor<1xi32>
    %0, %9 = "stablehlo.scatter"(%x, %x, %i, %x, %x) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
      stablehlo.return %c, %d : tensor<f32>, tensor<f32>
    }) : (tensor<4xf32>, tensor<4xf32>, tensor<1xi32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)`,
    "model-unsupported at 4:14",
    /scatter/u,
  ],
  [
    "a collective outside of a manual computation",
    line3,
    `%0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0]]> : tensor<1x1xi64>}> : (tensor<4xf32>) -> tensor<4xf32>`,
    "model-unsupported at 3:8",
    /all_gather/u,
  ],
];

describe("malformed models", () => {
  it("reads what the edits start from", async () => {
    expect(await refusal(small)).toBeNull();
  });

  it.each(rows)("%s", async (_, from, to, said, message) => {
    expect(small).toContain(from);
    const diagnostic = await refusal(small.replace(from, to));
    expect(textOf(diagnostic)).toBe(said);
    expect(diagnostic?.message ?? "read").toMatch(message);
  });

  it.each(["mlp-dp-tp", "shard-map-moe", "embed-xent"])(
    "%s, cut anywhere, is refused in its last line",
    async (name) => {
      const whole = text(name);
      const end = whole.trimEnd().length;
      for (let length = 211; length < end; length += 211) {
        const diagnostic = await refusal(whole.slice(0, length));
        expect(textOf(diagnostic)).toMatch(/^model-(?:syntax|invalid) at \d+:\d+$/u);
      }
    },
  );

  it.each([
    ["groups", "func.func @main(%x: tensor<4xf32> {a = @", "@"],
    ["regions", "func.func @main() { @ }", '"a.b"() ({ @'],
  ])("%s nested without an end", async (_, around, inner) => {
    const deep = around.replace(
      "@",
      Array.from({ length: 5000 }, () => inner.replace("@", inner === "@" ? "[" : "")).join(""),
    );
    expect(textOf(await refusal(deep))).toMatch(/^model-syntax at 1:\d+$/u);
  });

  it("refuses calls and loops that grow without an end", async () => {
    const calls = Array.from(
      { length: 30 },
      (_, i) => `func.func private @f${i}(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = call @f${i + 1}(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %1 = call @f${i + 1}(%0) : (tensor<4xf32>) -> tensor<4xf32>
      return %1 : tensor<4xf32>
    }`,
    ).join("\n");
    const last = `func.func private @f30(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }`;
    const main = `func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { %0 = call @f0(%x) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> }`;
    const diagnostic = await refusal(`${main}\n${calls}\n${last}`);
    expect(diagnostic?.message).toMatch(/too long when its calls are inlined/u);
  });

  it.each([
    ["an empty file", "", "which function"],
    ["several functions without main", "func.func @a() { return } func.func @b() { return }", "which function"],
    ["another file", "#!/bin/sh\nexit 1", "cannot be read"],
  ])("%s", async (_, model, message) => {
    const diagnostic = await refusal(model);
    expect([diagnostic?.message, textOf(diagnostic)]).toEqual([
      expect.stringContaining(message),
      expect.stringMatching(/ at 1:\d+$/u),
    ]);
  });

  it("reads the function that is asked for", async () => {
    expect(await refusal(small.replace("@main", "@other"), "other")).toBeNull();
    expect((await refusal(small, "absent"))?.message).toMatch(/no function @absent/u);
  });
});

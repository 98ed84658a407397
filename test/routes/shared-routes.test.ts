/** What several readers of a tensor need is moved once, also where only the first steps of their routes are the same. */
import { expect, it } from "vitest";
import { add, Fusion, gradients, indexSelect, linear, set, type TensorView } from "@braid-compiler/braid";
import { collectivesOf } from "../support/collectives-of.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { layout } from "./layout.ts";
import { place } from "./place-layout.ts";

const grid = "y2 x2";

function on(cuts: string, ...tensors: readonly TensorView[]): void {
  for (const tensor of tensors) place(tensor, layout(grid, cuts));
}

it.each<readonly [string, string, (f: Fusion) => readonly TensorView[]]>([
  [
    "the whole, and columns of all rows: rows are gathered once",
    "Allgather 4",
    (f) => {
      const x = f.input([8, 8]);
      const [whole, columns] = [set(x), set(x)];
      on("[y][x]", x);
      on("[][]", whole);
      on("[][x]", columns);
      return [whole, columns];
    },
  ],
  [
    "columns of all rows, and then the whole",
    "Allgather 4",
    (f) => {
      const x = f.input([8, 8]);
      const [columns, whole] = [set(x), set(x)];
      on("[y][x]", x);
      on("[][x]", columns);
      on("[][]", whole);
      return [columns, whole];
    },
  ],
  [
    "two linears and an addition that read an activation, which each device needs whole",
    "Allgather 4",
    (f) => {
      const [x, v, w, z] = [f.input([8, 8]), f.input([8, 8]), f.input([8, 8]), f.input([8, 8])];
      const results = [linear(x, v), linear(x, w), add(x, z)];
      on("[y][x]", x);
      on("[][]", v, w, z, ...results);
      return results;
    },
  ],
  [
    "a cotangent that each device has whole, where a part of another op's index is split afterwards",
    "Allreduce 4, Allgather 2",
    (f) => {
      const [x, index] = [f.input([6, 4, 7]), f.input([4], "int64")];
      const [w, bias, dy] = [f.input([12, 7]), f.input([12]), f.input([6, 4, 12])];
      const y = linear(indexSelect(x, 1, index), w, bias);
      on("[][y][]", x);
      on("[x]", index);
      const found = gradients(f, { of: [y], cotangents: [dy], wrt: [x, w, bias] });
      return [y, ...found.filter((each) => each !== null)];
    },
  ],
])("%s", async (_, collectives, build) => {
  const fusion = (): Fusion => {
    const f = new Fusion();
    for (const result of build(f)) f.output(result);
    return f;
  };
  expect(collectivesOf(fusion(), 4)).toBe(collectives);
  await expectOracle(fusion(), { devices: 4, machineAlone: true });
});

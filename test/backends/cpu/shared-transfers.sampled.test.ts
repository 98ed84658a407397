/**
 * Large transfers and copies that two workers share: every kind, in place and strided, with the bits of the
 * deterministic machine.
 */
import { afterAll, expect, it } from "vitest";
import { link, type Prepared, type Program } from "@braid-compiler/braid";
import { openMachineGroup } from "../../../src/backends/cpu/machine-group.ts";
import { numberCommands } from "../../../src/backends/cpu/threads/command-numbers.ts";
import { shareWorks } from "../../../src/backends/cpu/threads/shared-works.ts";
import { openThreadedGroup } from "../../../src/backends/cpu/threads/threaded-group.ts";
import { collectives, type CollectiveType, collectiveTypes, isRooted } from "../../../src/commands/collectives.ts";
import { partOf, type View } from "../../../src/commands/view.ts";
import { createMachineTables } from "../../../src/machine/tables.ts";
import { buildLists, type ListBuilder } from "../../machine/list-builder.ts";
import { runs, sample } from "../../support/suite.ts";
import { digestOfOutputs } from "./inputs-and-outputs.ts";

const ranks = 3;
const width = 2 ** 17 + 37;

const group = openThreadedGroup({ workers: 2, jitter: 5 });
afterAll(() => group.close());

function fill(program: Program, prepared: Prepared): void {
  for (const { id, role, arena, bytes } of program.buffers) {
    if (role !== "input" && arena !== "output") continue;
    const values = new Float32Array(bytes / 4);
    for (let i = 0; i < values.length; i++) values[i] = ((i * 7 + id) % 31) / 8 - 1.3;
    prepared.write(id, new Uint8Array(values.buffer));
  }
}

/** Runs on the machine and several times on two workers, always from the same inputs, which in-place forms overwrite. */
async function expectMachinesBits(program: Program): Promise<void> {
  const tables = createMachineTables(program, "streams");
  expect(shareWorks(tables, numberCommands(program), 2).works.size).toBeGreaterThan(0);
  const onMachine = await openMachineGroup({}).prepare(program);
  fill(program, onMachine);
  await onMachine.execute();
  const expected = digestOfOutputs(program, onMachine);
  const prepared = await group.prepare(program);
  for (let run = 0; run < runs({ quick: 2, long: 4 }); run++) {
    fill(program, prepared);
    await prepared.execute({ timeout: 20 });
    expect(digestOfOutputs(program, prepared)).toBe(expected);
  }
  prepared.release();
}

type Form = "apart" | "in place" | "transposed";

function viewsOf(list: ListBuilder, type: CollectiveType, position: number, root: number, form: Form) {
  const rule = collectives[type];
  const buffer = (side: "input" | "output", split: boolean): View => {
    if (form !== "transposed") return list[side](split ? [ranks, width] : [width]);
    // Elements of a row lie 3 apart: what is contiguous in one buffer is not in the other.
    const { dtype, offset, buffer } = list[side](split ? [ranks, width, 3] : [width, 3]);
    const strides = side === "input" ? [3] : [1];
    return {
      dtype,
      offset,
      buffer,
      shape: split ? [ranks, width] : [width],
      strides: split ? [3 * width, ...strides] : strides,
    };
  };
  const reads = rule.reads === "all" || position === root;
  const writes = rule.writes === "all" || position === root;
  if (form === "in place" && reads && writes && rule.inPlace !== "same" && rule.splitsInput) {
    const input = list.output([ranks, width]);
    return { input, output: partOf(input, position) };
  }
  const output = writes ? buffer("output", rule.splitsOutput) : null;
  if (form !== "in place" || output === null || !reads) {
    return { input: reads ? buffer("input", rule.splitsInput) : null, output };
  }
  if (rule.inPlace === "same") return { input: output, output };
  return { input: partOf(output, position), output };
}

const forms: readonly Form[] = ["apart", "in place", "transposed"];
const cases = collectiveTypes
  .flatMap((type) => forms.map((form) => ({ type, form })))
  .filter(({ type, form }) => form !== "in place" || collectives[type].inPlace !== "never");

it.each(sample(cases, 5))("$type, $form, in parts", async ({ type, form }) => {
  const { reduces } = collectives[type];
  const program = link(
    buildLists(ranks, (list, rank) => {
      list.collective(0, type, {
        team: [0, 1, 2],
        ...(isRooted(type) ? { root: 1 } : {}),
        ...(reduces ? { reduceOp: "sum" } : {}),
        ...viewsOf(list, type, rank, 1, form),
      });
    }),
  );
  await expectMachinesBits(program);
});

const others: readonly { readonly name: string; readonly build: () => Program }[] = [
  {
    name: "sends and receives",
    build: () =>
      link(
        buildLists(ranks, (list, rank) => {
          list.group(0, [
            { type: "recv", peer: (rank + 2) % ranks, view: list.output([4 * width]) },
            { type: "send", peer: (rank + 1) % ranks, view: list.input([4 * width]) },
          ]);
        }),
      ),
  },
  {
    name: "copies, also of views with gaps",
    build: () =>
      link(
        buildLists(1, (list) => {
          const [wide, narrow] = [list.input([1000, 700]), list.output([1000, 600])];
          list.copy(0, { ...wide, shape: narrow.shape }, narrow);
          const turned = list.output([700, 1000]);
          list.copy(0, wide, { ...turned, shape: wide.shape, strides: [1, 1000] });
        }),
      ),
  },
];

it.each(sample(others, 1))("$name, in parts", async ({ build }) => {
  await expectMachinesBits(build());
});

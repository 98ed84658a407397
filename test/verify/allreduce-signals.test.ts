/**
 * An Allreduce in peers' memory, whose ranks write each other's outputs: the verifier finds every missing signal and
 * wait. Without one of them the list hangs; without a signal and its wait there is a race between the commands that
 * they order.
 */
import { type CommandList, DeviceMesh, type Finding, HostProgramBuilder, link, record } from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import type { SignalRank } from "../../src/commands/command-list.ts";
import { at, invariant } from "../../src/support/invariant.ts";
import { judge } from "./judge/judge.ts";
import { type Edge, edgesOf, withoutEdge } from "./random/edges.ts";
import { verifyLists } from "../support/verify-lists.ts";

const world = 3;

/** Doubles `elements` numbers, reduces them, and doubles the sums. */
function recorded(elements: number, inPlace: boolean): readonly CommandList[] {
  const h = new HostProgramBuilder();
  const mesh = DeviceMesh.range(world);
  const tensor = (): ReturnType<typeof h.tensor> => h.tensor([elements], { mesh });
  const [x, y] = [h.input([elements], { mesh }), tensor()];
  h.output(y);
  const parts = h.allocate(tensor());
  const sums = inPlace ? parts : h.allocate(tensor());
  h.add(x, x, { out: parts });
  h.wait(h.communication("Allreduce", { input: parts, output: sums, backend: "cuda" }));
  h.add(sums, sums, { out: y });
  h.deallocate(parts);
  if (!inPlace) h.deallocate(sums);
  const program = h.build();
  return Array.from({ length: world }, (_, rank) => record(program, { rank }));
}

interface Found {
  readonly errors: readonly Finding[];
  readonly without: readonly CommandList[];
}

function errorsWithout(lists: readonly CommandList[], edge: Edge): Found {
  const without = withoutEdge(lists, edge);
  invariant(without !== null, "every member has more than one command of the collective", edge);
  expect(judge(link(without)).ok).toBe(false);
  return { errors: verifyLists(without).findings.filter(({ severity }) => severity === "error"), without };
}

/**
 * Positions of the rank's launches, in order: the one that makes its input, its combination if it has a slice, the one
 * that reads its output.
 */
function launchesOf(lists: readonly CommandList[], rank: number): readonly number[] {
  return at(lists, rank).commands.flatMap(({ kind }, index) =>
    kind === "launch" || kind === "combineRanks" ? [index] : [],
  );
}

describe.each([
  { elements: 12, inPlace: false, count: 12 },
  { elements: 12, inPlace: true, count: 12 },
  // Two of three ranks have a slice.
  { elements: 2, inPlace: false, count: 8 },
])("of $elements elements, in place: $inPlace", ({ elements, inPlace, count }) => {
  const lists = recorded(elements, inPlace);
  const edges = edgesOf(lists);
  const ofKind = (kind: Edge["kind"]): readonly Edge[] => edges.filter((edge) => edge.kind === kind);

  it("is right, and wrong without any one signal or wait", () => {
    expect(verifyLists(lists).ok).toBe(true);
    for (const kind of ["signal", "take"] as const) {
      expect(ofKind(kind)).toHaveLength(count);
      for (const edge of ofKind(kind)) {
        const { errors } = errorsWithout(lists, edge);
        expect(errors.map(({ code }) => code)).toContain("signal-unbalanced");
      }
    }
  });

  it("races without any one signal and its wait", () => {
    const cut = ofKind("signal with its take");
    expect(cut).toHaveLength(count);
    for (const edge of cut) {
      const { rank: from, index } = at(edge.commands, 0);
      const command = at(at(lists, from).commands, index);
      invariant(command.kind === "signalRank", "the edge begins at its signal", command);
      const { position: to, slot }: SignalRank = command;
      const { errors, without } = errorsWithout(lists, edge);
      const [theirs, ours] = [launchesOf(without, from), launchesOf(without, to)];
      // ready: the maker of an input, and its combiner. done: the combiner of an output, and its reader.
      const between = slot === "ready" ? [at(theirs, 0), at(ours, 1)] : [at(theirs, 1), at(ours, ours.length - 1)];
      const races = errors.filter(({ code }) => code === "data-race");
      expect(races.map(({ commands }) => commands.map(({ rank, command: place }) => [rank, place]))).toContainEqual([
        [from, at(between, 0)],
        [to, at(between, 1)],
      ]);
    }
  });
});

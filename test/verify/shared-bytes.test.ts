/**
 * Temporaries to which link gave one place: the second tenant may move in when nothing needs the first one any more.
 */
import { describe, expect, test } from "vitest";
import { type CommandList, link, type Program, verify } from "@braid-compiler/braid";
import { createCpuBackend, parseInterleaving } from "../../src/cpu.ts";
import { at } from "../../src/support/invariant.ts";
import { buildLists } from "../machine/list-builder.ts";

/** t is read on a side stream, then freed, and u takes its place. */
function tenants(joined: boolean): readonly CommandList[] {
  return buildLists(1, (list) => {
    const side = list.stream("side");
    const [a, b] = [list.input([64]), list.input([64])];
    const [t, u] = [list.temporary([64]), list.temporary([64])];
    const [c, d] = [list.output([64]), list.output([64])];
    list.alloc(0, t);
    list.copy(0, a, t);
    list.synchronize(side, 0);
    list.copy(side, t, c);
    const read = list.record(side);
    if (joined) list.wait(0, read);
    list.free(0, t);
    list.alloc(0, u);
    list.copy(0, b, u);
    list.copy(0, u, d);
    list.free(0, u);
    if (!joined) list.wait(0, read);
  });
}

async function outputsOf(program: Program, schedule: string | null): Promise<readonly number[]> {
  const on = createCpuBackend({ interleaving: schedule === null ? { kind: "turns" } : parseInterleaving(schedule) });
  const prepared = await (await on.open({ world: 1, localRanks: [0] })).prepare(program);
  for (const { id, role } of program.buffers) {
    if (role === "input") prepared.write(id, new Uint8Array(new Float32Array(64).fill(id + 1).buffer));
  }
  await prepared.execute();
  const outputs = program.buffers.filter(({ role }) => role === "output");
  return outputs.map(({ id }) => at(new Float32Array(prepared.read(id).slice().buffer), 0));
}

describe("bytes of two buffers", () => {
  test("link gives both one place", () => {
    const [, , t, u] = link(tenants(true)).buffers;
    expect([u?.arena, u?.offset]).toEqual([t?.arena, t?.offset]);
  });

  test("freed after the last read: nothing", () => {
    expect(verify(link(tenants(true)))).toMatchObject({ ok: true, findings: [] });
  });

  test("freed under a reader: a schedule shows what the next tenant does to it", async () => {
    const program = link(tenants(false));
    const { findings } = verify(program);
    expect(findings.map(({ code, message }) => [code, message])).toEqual([
      ["freed-in-use", "T2 on rank 0 may be freed while it is still read"],
    ]);
    for (const { interleaving } of findings) expect(await outputsOf(program, interleaving)).toEqual([2, 2]);
  });

  test("a buffer that lives is not given away", () => {
    const program = link(tenants(true));
    const list = at(program.ranks, 0);
    const free = list.commands.findIndex(({ kind }) => kind === "free");
    const kept: Program = {
      ...program,
      ranks: [
        {
          ...list,
          commands: list.commands.toSpliced(free, 1),
          origins: list.origins.toSpliced(free, 1),
          transferOf: list.transferOf.toSpliced(free, 1),
        },
      ],
    };
    expect(verify(kept).findings.map(({ code }) => code)).toEqual(["memory-shared"]);
  });
});

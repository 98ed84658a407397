/**
 * The complete diagnostic for a mistake in a hand-built program: the printed statement, the rank and iteration if they
 * matter, what was found, and the fix. The back end of these tests refuses to prepare anything, because a mistake must
 * be found before anything runs.
 */
import { describe, expect, it } from "vitest";
import {
  type Backend,
  compile,
  DiagnosticError,
  type HostProgram,
  HostProgramBuilder,
  MultiDeviceExecutor,
} from "@braid-compiler/braid";
import { requireVerified } from "@braid-compiler/braid/internals";
import { badPrograms } from "./bad-programs.ts";

const neverRuns: Backend = {
  name: "never",
  open: async () => ({
    prepare: () => {
      throw new Error("a bad program was prepared");
    },
    close: async () => {},
  }),
};

async function saidOf(build: (h: HostProgramBuilder, rank: number) => void, devices: number): Promise<string> {
  const source = (rank: number): HostProgram => {
    const h = new HostProgramBuilder();
    build(h, rank);
    return h.build();
  };
  try {
    const executor = await MultiDeviceExecutor.create(source, { devices, on: neverRuns });
    await executor.run([]);
  } catch (error) {
    // Lines of the file of programs are not part of what is tested.
    if (error instanceof DiagnosticError) return error.message.replaceAll(/\n {2}where: T\d+ is from .*/gu, "");
    throw error;
  }
  throw new Error("nothing was said");
}

describe("a hand-built program with", () => {
  it.each(badPrograms)("$name", async ({ build, devices, said }) => {
    expect(await saidOf((h, rank) => build(h, rank, 0), devices)).toBe(said.trim());
  });

  const mended = badPrograms.flatMap((row) =>
    Array.from({ length: row.fixes ?? 1 }, (_, i) => ({ ...row, fix: i + 1 })),
  );
  it.each(mended)("$name, mended by fix $fix, compiles", ({ build, devices, fix }) => {
    const source = Array.from({ length: devices }, (_, rank) => {
      const h = new HostProgramBuilder();
      build(h, rank, fix);
      return h.build();
    });
    requireVerified(compile(source, { devices }));
  });
});

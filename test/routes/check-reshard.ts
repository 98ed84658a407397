/** One resharding, verified, and run on the machine against the oracle. */
import { compile } from "@braid-compiler/braid";
import { expect } from "vitest";
import { expectOracle } from "../support/expect-oracle.ts";
import { mostReceived } from "./received-bytes.ts";
import { devicesOf, type Figure, lackedBytes, type Move, reshardProgram } from "./reshard-program.ts";

export async function checked(move: Move, backend: "nccl" | "cuda"): Promise<Figure> {
  const fusion = reshardProgram(move);
  const devices = devicesOf(move);
  const compilation = compile(fusion, { devices, backend, notes: false });
  expect(compilation.report.findings).toEqual([]);
  await expectOracle(fusion, { devices, backend, machineAlone: true, compilation });
  return { bytes: mostReceived(compilation.program), lacks: lackedBytes(move) };
}

/** The bytes that devices receive, counted from the recorded Program of a serial lowering with library transfers. */
import {
  DiagnosticError,
  type Fusion,
  type FusionData,
  link,
  lower,
  type LowerOptions,
  type Program,
  record,
} from "@braid-compiler/braid";
import type { Collective } from "../../src/commands/command.ts";
import { placedData } from "../../src/compile/lower.ts";
import { collectives } from "../../src/host/collectives.ts";
import { dtypes } from "../../src/numerics/dtype.ts";

type Sizes = ReadonlyMap<string, number>;

/** As Braid moves them, and as lowering without Braid's rewrites moves them for the same shardings of all tensors. */
export interface MovedBytes {
  readonly derived: number;
  /** Null if that lowering refuses the graph. */
  readonly annotated: number | null;
}

export function movedBytes(
  fusion: Fusion,
  devices: number,
  sizes: Sizes,
  options: Pick<LowerOptions, "accumulate" | "insertReshardingAfter">,
): MovedBytes {
  const propagated = placedData(fusion, options);
  const derived = bytesOf(fusion.data(), devices, sizes, options);
  let annotated: number | null = null;
  try {
    annotated = bytesOf(propagated, devices, sizes, { ...options, nvfuserLimits: true });
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
  }
  return { derived, annotated };
}

function bytesOf(data: FusionData, devices: number, sizes: Sizes, options: LowerOptions): number {
  return receivedBytes(
    link(
      Array.from({ length: devices }, (_, rank) =>
        record(lower({ data: () => data }, { ...options, rank, overlap: false }), { rank, devices, sizes }),
      ),
    ),
  );
}

function receivedBytes({ ranks }: Program): number {
  let bytes = 0;
  for (const { rank, commands } of ranks) {
    for (const command of commands) {
      if (command.kind !== "transfer") continue;
      const { operation } = command;
      if (operation.kind === "collective") bytes += collectiveBytes(operation, rank);
      else {
        for (const { type, peer, view } of operation.ops) {
          if (type === "recv" && peer !== rank) bytes += bytesIn(view);
        }
      }
    }
  }
  return bytes;
}

/** With the least traffic: each slice goes to the ranks that need it once, and a sum over n ranks halves like a ring. */
function collectiveBytes({ type, team, root, output }: Collective, rank: number): number {
  if (output === null) return 0;
  const { reduces, splitsInput, splitsOutput, writes } = collectives[type];
  const others = team.length - 1;
  const whole = bytesIn(output);
  if (reduces) return splitsInput || writes === "root" ? whole * others : (2 * whole * others) / team.length;
  if (splitsOutput) return (whole * others) / team.length;
  return root !== null && team[root] === rank ? 0 : whole;
}

function bytesIn({ dtype, shape }: NonNullable<Collective["output"]>): number {
  return shape.reduce((product, extent) => product * extent, dtypes[dtype].bytes);
}

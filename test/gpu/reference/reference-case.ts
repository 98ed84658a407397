/** A case of nvFuser's multi-device tests, in every idiom in which it makes sense. */
import type { ProgramSource } from "../../../src/compile/lower-all.ts";
import type { Fusion } from "../../../src/ir/api/fusion.ts";
import type { Sizes } from "../../../src/ir/sizes.ts";
import type { LoweringOptions } from "../../../src/passes/options.ts";
import { type Expectation, expectationsOf } from "../expectation.ts";

export interface ReferenceCase {
  /** As nvFuser calls it. */
  readonly name: string;
  /** Whether it runs on so many devices. */
  readonly runsOn: (devices: number) => boolean;
  /** Of a host program `backend` is what moves its data, for the name of the row alone. */
  readonly lowerings: readonly Partial<LoweringOptions>[];
  readonly source: (devices: number, lowering: Partial<LoweringOptions>) => ProgramSource;
  readonly expectations: (devices: number) => readonly Expectation[];
  /** Runs with each set of inputs. */
  readonly repeat: number;
}

export const nccl = { backend: "nccl" } as const;
/** Collectives in peer memory. */
export const cuda = { backend: "cuda" } as const;
export const get = { backend: "cuda", protocol: "get" } as const;
export const put = { backend: "cuda", protocol: "put" } as const;

export const onAnyNumber = (): boolean => true;

/** A Fusion against the oracle; `sizes` of the extents that it leaves open. */
export function fusionCase(
  name: string,
  lowerings: readonly Partial<LoweringOptions>[],
  build: (devices: number) => Fusion,
  runsOn: (devices: number) => boolean = onAnyNumber,
  sizes?: (devices: number) => Sizes,
): ReferenceCase {
  return {
    name,
    runsOn,
    lowerings,
    source: build,
    expectations: (devices) => expectationsOf(build(devices), sizes?.(devices)),
    repeat: 3,
  };
}

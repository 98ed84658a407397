/**
 * Compiles a source under candidates. What some of them have in common is made once: they are lowered alike if they
 * differ only in options of loops that the source does not have, and recorded alike if nothing copies point to point.
 */
import { type AnyCompilation, compile, type CompileOptions, loweringOf } from "../../compile/compile.ts";
import { classesOf, isFusionSource, type Lowered, lowerAll, type ProgramSource } from "../../compile/lower-all.ts";
import { resolveLoweringOptions } from "../../compile/lower.ts";
import { walk } from "../../host/traverse.ts";
import { streamAxis } from "../../ir/stream.ts";
import type { LoweringOptions } from "../../passes/options.ts";
import { candidateStreams, type ScheduleCandidate } from "./candidates.ts";
import { getOrMake } from "../../support/invariant.ts";

/** Throws what lowering, record and link throw. */
export type CompileCandidate = (candidate: Pick<ScheduleCandidate, "lowering" | "schedule">) => AnyCompilation;

/** `given`: options of all candidates. */
export function candidateCompiler(source: ProgramSource | Lowered, given: CompileOptions): CompileCandidate {
  const hasStreams = isFusionSource(source) && source.data().tensors.some((tensor) => streamAxis(tensor) !== null);
  const allLowered = new Map<string, OnceLowered>();
  const allCompiled = new Map<string, AnyCompilation>();
  return ({ lowering, schedule }) => {
    const options: CompileOptions = { ...given, ...lowering, streams: candidateStreams, schedule, verify: "off" };
    const { devices } = options;
    const own = loweringOf(options);
    const key = isFusionSource(source) ? loweringKey(resolveLoweringOptions(own), hasStreams) : "given";
    const once = getOrMake(allLowered, key, () => onceLowered(lowerAll(source, { devices, ...own })));
    const { lowered, copiesPointToPoint } = once;
    const recordedAs = JSON.stringify([key, copiesPointToPoint ? (options.protocol ?? null) : null, schedule]);
    const compiled = getOrMake(allCompiled, recordedAs, () => compile(lowered, options));
    return { ...compiled, options: { ...compiled.options, ...options } };
  };
}

interface OnceLowered {
  readonly lowered: Lowered;
  readonly copiesPointToPoint: boolean;
}

function onceLowered(lowered: Lowered): OnceLowered {
  const isPointToPoint = classesOf(lowered).some(({ host }) =>
    walk(host.body).some(({ kind }) => kind === "P2PCommunication"),
  );
  return { lowered, copiesPointToPoint: isPointToPoint };
}

/** Equal for options under which a Fusion has the same host programs. */
function loweringKey(options: LoweringOptions, hasStreams: boolean): string {
  const { overlap, p2p, protocol, interStreamSync, ...others } = options;
  const hasLoops = (hasStreams && overlap) || options.deviceLoops;
  return JSON.stringify([others, hasStreams ? overlap : null, hasLoops ? { p2p, protocol, interStreamSync } : null]);
}

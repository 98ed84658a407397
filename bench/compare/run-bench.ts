/**
 * Runs one `braid bench` on this process's ranks, from its plan to its rows. Problems run one after the other, and the
 * contenders of a problem take turns.
 */
import { DiagnosticError, fail } from "../../src/diagnostics/diagnostic.ts";
import type { Contender } from "./contender.ts";
import type { Exchange, Outcome } from "../../src/launch/exchange.ts";
import type { Ask } from "./block/block-reference.ts";
import { benchRows, type BenchRow } from "./bench-row.ts";
import type { BenchPlan } from "./bench-plan.ts";
import type { Implementation } from "./implementation.ts";
import { labelOf } from "./implementation-label.ts";
import { createMatrices, type Matrices } from "../../src/numerics/tensor/random-matrices.ts";
import { matmulWorkload } from "./braid/matmul-workload.ts";
import { blockWorkload } from "./block/block-workload.ts";
import { measure, type Measured } from "./measure.ts";
import { prepareOwn } from "./braid/own-contender.ts";
import { type PeerAbility, peerContender, type PeerImplementation, setUpPeer } from "./torch/peer-contender.ts";
import type { ContenderPlaces } from "../../src/cli/ranks/places.ts";
import { type BenchProblem, isBlock, sizeText } from "./bench-problem.ts";
import type { OwnImplementation, Ready, Workload } from "./workload.ts";
import type { TorchPeer } from "./torch/torch-peer.ts";

export interface BenchHost {
  readonly places: ContenderPlaces;
  readonly exchange: Exchange;
  /** Collective: starts PyTorch's process at the first call; fails if there is no PyTorch. */
  readonly peer: () => Promise<PeerStart>;
  /** Receives lines about progress and about contenders that are left out. */
  readonly say: (line: string) => void;
  /** Called with all rows so far, after each problem. */
  readonly onRows: (rows: readonly BenchRow[]) => Promise<void>;
}

export type PeerStart =
  { readonly kind: "done"; readonly value: TorchPeer } | { readonly kind: "failed"; readonly why: string };

/** Collective: all ranks call it together with the same plan. */
export async function runBench(plan: BenchPlan, host: BenchHost): Promise<readonly BenchRow[]> {
  const rows: BenchRow[] = [];
  const matrices = new Map<string, Matrices>();
  for (const [i, problem] of plan.problems.entries()) {
    const { primitive, dtype } = problem;
    const label = `${i + 1}/${plan.problems.length} ${primitive} ${sizeText(problem)} ${dtype}`;
    const drawn = matrices.get(dtype) ?? createMatrices(dtype, plan.seed);
    matrices.set(dtype, drawn);
    const peer = oncePeer(host, () => workload.setup());
    const ask: Ask = async (request) => {
      const ready = await peer();
      return ready.kind === "failed" ? ready : ready.value.peer.ask(request);
    };
    const workload: Workload = isBlock(problem)
      ? blockWorkload(problem, plan, plan.seed, ask)
      : matmulWorkload(problem, plan, drawn, plan.seed);
    const measured = await runProblem(plan, problem, workload, label, { ...host, peer });
    rows.push(...benchRows(problem, measured));
    await host.onRows(rows);
  }
  return rows;
}

interface ReadyPeer {
  readonly peer: TorchPeer;
  readonly ability: PeerAbility;
}

/** Collective: PyTorch's process, set up for one problem at the first call. */
type PeerOfProblem = () => Promise<Outcome<ReadyPeer>>;

function oncePeer({ peer: start, exchange }: BenchHost, setup: Workload["setup"]): PeerOfProblem {
  let ready: Promise<Outcome<ReadyPeer>> | null = null;
  const make = async (): Promise<Outcome<ReadyPeer>> => {
    const peer = await start();
    if (peer.kind === "failed") return peer;
    const ability = await setUpPeer(peer.value, setup(), exchange);
    if (ability.kind === "failed") return ability;
    return { kind: "done", value: { peer: peer.value, ability: ability.value } };
  };
  return () => (ready ??= make());
}

interface ProblemHost extends Omit<BenchHost, "peer"> {
  readonly peer: PeerOfProblem;
}

async function runProblem(
  plan: BenchPlan,
  problem: BenchProblem,
  workload: Workload,
  label: string,
  host: ProblemHost,
): Promise<readonly Measured[]> {
  const { implementations } = plan;
  host.say(`${label}: preparing`);
  const planned = implementations.flatMap((each) =>
    each.kind === "braid" ? (tryToPlan(each, workload, host.say) ?? []) : [],
  );
  if (planned.every(({ implementation }) => isBaseline(implementation))) nothingLeft(implementations, workload);
  const contenders: Contender[] = [];
  const failed: Measured[] = [];
  try {
    for (const each of planned) {
      const place = await host.places.placeFor(each.implementation.options.graph ?? "auto");
      contenders.push(await prepareOwn(each, place));
    }
    const peers = implementations.filter((each) => each.kind === "peer");
    if (peers.length > 0) failed.push(...(await addPeers(peers, problem, contenders, host)));
    const { iterations, warmup, validate } = plan;
    const measured = await measure(contenders, host.exchange, {
      iterations,
      warmup,
      validate,
      onRound: (done) => host.say(`${label}: ${contenders.length} contenders, ${done} of ${iterations} iterations`),
    });
    return [...measured, ...failed];
  } finally {
    for (const contender of contenders) contender.release();
  }
}

/** Null, with a line of output, if the combination is not possible. A baseline must be possible. */
function tryToPlan(implementation: OwnImplementation, workload: Workload, say: (line: string) => void): Ready | null {
  try {
    const planned = workload.plan(implementation);
    if (planned.reason !== null)
      say(`${labelOf({ ...implementation, option: implementation.said })}: ${planned.reason}`);
    return planned;
  } catch (error) {
    if (!(error instanceof DiagnosticError) || isBaseline(implementation)) throw error;
    say(`left out: ${labelOf({ ...implementation, option: implementation.said })}: ${error.diagnostics[0]?.message}`);
    return null;
  }
}

function isBaseline({ name, said }: Implementation): boolean {
  return said === "" && (name === "compute-only" || name === "serial");
}

/** Throws the error of the first implementation that the user named, if any. */
function nothingLeft(implementations: readonly Implementation[], workload: Workload): void {
  const [first] = implementations.filter((each) => each.kind === "braid" && !isBaseline(each));
  if (first?.kind === "braid") workload.plan(first);
}

/** Adds the peers that PyTorch's process supports and reports the others with their reasons. */
async function addPeers(
  peers: readonly PeerImplementation[],
  { primitive }: BenchProblem,
  contenders: Contender[],
  { peer: start, say }: ProblemHost,
): Promise<readonly Measured[]> {
  const without = (why: string): readonly Measured[] => {
    const asked = peers.filter((each) => each.asked);
    if (asked.length < peers.length) say(`left out: PyTorch: ${why}`);
    return asked.map((implementation) => ({ implementation, note: null, result: { kind: "failed", why } }));
  };
  const ready = await start();
  if (ready.kind === "failed") return without(ready.why);
  const { peer, ability } = ready.value;
  const missing: Measured[] = [];
  for (const implementation of peers) {
    const contender = peerContender(implementation, peer, ability);
    if (ability.impls.includes(contender.name)) contenders.push(contender);
    else if (implementation.asked) {
      const why = `not available here for ${primitive}`;
      missing.push({ implementation, note: null, result: { kind: "failed", why } });
    }
  }
  return missing;
}

export function requirePeers(implementations: readonly Implementation[], on: BenchPlan["on"]): void {
  const peer = implementations.find((each) => each.kind === "peer" && each.asked);
  if (peer === undefined || on === "cuda") return;
  fail({
    code: "option-value",
    message: `${peer.name} runs on GPUs only`,
    place: { kind: "option", text: "--impl" },
    found: `${peer.name} with --on ${on}`,
    expected: "--on cuda",
    help: "leave it out, or run on GPUs",
  });
}

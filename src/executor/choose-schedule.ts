/**
 * `scheduleChoice: "auto"`: every candidate is lowered, recorded, linked and rewritten as for a run, and simulated on the machine of a
 * measured profile; the one that takes least is chosen. So the choice depends on the program, its sizes and the profile alone, and every
 * rank makes the same one.
 */
import type { Program } from "../commands/program.ts";
import { DiagnosticError } from "../diagnostics/diagnostic.ts";
import { sizesFromMeshes, type Sizes } from "../ir/sizes.ts";
import type { LoweringOptions } from "../passes/options.ts";
import { moveCopiesToLane } from "../schedule/copy-lane.ts";
import { applySchedule, type ScheduleOptions } from "../schedule/schedule-options.ts";
import type { MachineProfile } from "../simulate/machine-profile.ts";
import { simulate } from "../simulate/simulate.ts";
import { at } from "../support/invariant.ts";
import { linkPrograms } from "./linked-program.ts";
import { type ProgramSource, rankPrograms } from "./program-source.ts";
import { choices, copyLoops, libraryLoops, type ScheduleCandidate, serial } from "./schedule-candidates.ts";

export interface ChooseOptions {
  readonly devices: number;
  readonly profile: MachineProfile;
  /** Lowering options that the user set: candidates with other ones drop out. */
  readonly lowering?: Partial<LoweringOptions>;
  /** Of extents that the program leaves open, by name. */
  readonly sizes?: Sizes;
  /** Whether runs are launched as graphs; so, if not given. */
  readonly graph?: boolean;
}

export interface Considered {
  readonly candidate: ScheduleCandidate;
  /** As simulated. */
  readonly milliseconds: number;
}

export interface ScheduleChoice {
  readonly chosen: ScheduleCandidate;
  /** All that apply, the fastest first; of equal Programs the first. */
  readonly considered: readonly Considered[];
  /** Why, in one line. */
  readonly reason: string;
}

/** Worker streams of all candidates: as many as there are chunks, or nearly, so that none waits for the place of another. */
export const candidateStreams = 64;

/** Throws what lowering and recording throw where no candidate applies, the serial form's error. */
export function chooseSchedule(source: ProgramSource, options: ChooseOptions): ScheduleChoice {
  const { profile, lowering = {}, graph = true } = options;
  const considered: Considered[] = [];
  const seen = new Set<string>();
  const consider = (candidate: ScheduleCandidate, program: Program): void => {
    const key = JSON.stringify(program.ranks.map(({ commands }) => commands));
    if (seen.has(key)) return;
    seen.add(key);
    considered.push({ candidate, milliseconds: simulate(program, profile, { graph }).milliseconds });
  };
  let firstError: unknown = null;
  const withLinked = (own: Partial<LoweringOptions>, use: (program: Program) => void): void => {
    if (contradicts(own, lowering)) return;
    try {
      use(linkedProgram(source, own, options));
    } catch (error) {
      if (!(error instanceof DiagnosticError)) throw error;
      firstError ??= error;
    }
  };
  for (const candidate of [serial, ...libraryLoops]) {
    withLinked(candidate.lowering, (program) => {
      consider(candidate, program);
    });
  }
  for (const { name, lowering: own } of copyLoops) {
    withLinked(own, (program) => {
      for (const { names, schedule } of combinations(program)) {
        const candidate = {
          name: [name, ...names].join(", "),
          lowering: own,
          copyLane: "dedicated",
          schedule,
        } as const;
        consider(candidate, moveCopiesToLane(applySchedule(program, schedule)));
      }
    });
  }
  if (considered.length === 0) throw firstError;
  considered.sort((a, b) => a.milliseconds - b.milliseconds);
  return { chosen: at(considered, 0).candidate, considered, reason: reasonOf(considered) };
}

function contradicts(own: Partial<LoweringOptions>, given: Partial<LoweringOptions>): boolean {
  const owned = new Map(Object.entries(own));
  return Object.entries(given).some(([name, value]) => owned.has(name) && owned.get(name) !== value);
}

function linkedProgram(
  source: ProgramSource,
  own: Partial<LoweringOptions>,
  { devices, lowering = {}, sizes }: ChooseOptions,
): Program {
  const { signature, hosts } = rankPrograms(source, devices, { ...lowering, ...own });
  return linkPrograms(hosts, sizes ?? sizesFromMeshes(signature.tensors), new Map(), {
    numberOfStreams: candidateStreams,
    p2pProtocol: own.p2pProtocol ?? "get",
    copyLane: "inline",
    schedule: {},
    // What is chosen is verified before it runs.
    verify: "off",
  });
}

interface Combination {
  readonly names: readonly string[];
  readonly schedule: ScheduleOptions;
}

/** One of each row of `choices`, without those that alone leave the program as it is. */
function combinations(program: Program): readonly Combination[] {
  const start: readonly Combination[] = [{ names: [], schedule: {} }];
  return choices.reduce((combined, row) => {
    const able = row.filter(
      (choice, i) => i === 0 || isEmpty(choice.schedule) || applySchedule(program, choice.schedule) !== program,
    );
    return combined.flatMap(({ names, schedule }) =>
      able.map((choice) => ({
        names: choice.name === "" ? names : [...names, choice.name],
        schedule: { ...schedule, ...choice.schedule },
      })),
    );
  }, start);
}

function isEmpty(schedule: ScheduleOptions): boolean {
  return Object.keys(schedule).length === 0;
}

function reasonOf(considered: readonly Considered[]): string {
  const first = at(considered, 0);
  const text = (milliseconds: number): string => `${milliseconds.toPrecision(3)} ms`;
  const slow = considered.find(({ candidate }) => candidate === serial);
  const other = considered.find((each) => each !== first && each !== slow);
  const against = [
    ...(slow === undefined || slow === first ? [] : [`serial ${text(slow.milliseconds)}`]),
    ...(other === undefined ? [] : [`next ${other.candidate.name} ${text(other.milliseconds)}`]),
  ];
  const of = `the least of ${considered.length} simulated schedules`;
  return `${first.candidate.name}: ${text(first.milliseconds)}, ${of}${against.length === 0 ? "" : `; ${against.join(", ")}`}`;
}

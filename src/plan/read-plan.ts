/**
 * Reads a plan back. Everything that a reader relies on is checked before a rank uses it: format and version, hashes,
 * the forms of all documents, and every number that names something (check-rank.ts).
 */
import * as v from "valibot";
import type { DeviceOps } from "../backends/cuda/ops/device-op.ts";
import type { ListNotes } from "../backends/cuda/ops/list-notes.ts";
import { fail } from "../diagnostics/diagnostic.ts";
import { at } from "../support/invariant.ts";
import { parseJson } from "../support/json-document.ts";
import { unfoldLists } from "./blocks.ts";
import { checkRankDocument, checkSignals } from "./check-rank.ts";
import { rankFile } from "./make-plan.ts";
import {
  type PlanDocument,
  planDocument,
  planFormat,
  planInvalid,
  planPlace,
  planRecords,
  planVersion,
  sha256,
} from "./plan-document.ts";
import { type PlanTensor, type RankDocument, rankDocument } from "./rank-document.ts";

export interface Plan {
  readonly document: PlanDocument;
  /** Of plan.json, which has the hashes of all other files: equal for equal plans. */
  readonly hash: string;
  /** Indexed by rank. */
  readonly ranks: readonly PlanRank[];
}

export interface PlanRank {
  readonly ops: DeviceOps;
  readonly notes: ListNotes;
  /** Inputs and outputs as this rank has them. */
  readonly tensors: readonly PlanTensor[];
}

/** Reads a file of the plan's folder. */
export type ReadFile = (file: string) => Promise<Uint8Array>;

/** Throws `plan-invalid`, `plan-version`, `plan-unverified`, and what `read` throws. */
export async function readPlan(folder: string, read: ReadFile): Promise<Plan> {
  const bytes = await read("plan.json");
  const document = planOf(folder, parsed(folder, "plan.json", textOf(folder, "plan.json", bytes)));
  const texts = new Map<string, string>();
  for (const [file, expected] of Object.entries(document.files)) {
    if (!/^(rank-\d+\.json|kernels\/k\d+\.cu)$/.test(file)) {
      planInvalid(
        folder,
        "plan.json",
        `it names the file ${file}`,
        "files of the plan only: rank-R.json, kernels/kN.cu",
      );
    }
    const content = await read(file);
    const found = sha256(content);
    if (found !== expected) {
      planInvalid(folder, file, `SHA-256 ${found}`, `${expected}, as plan.json says`);
    }
    texts.set(file, textOf(folder, file, content));
  }
  const hashed = (file: string): string =>
    texts.get(file) ?? planInvalid(folder, "plan.json", `no hash of ${file}`, "a hash of every file");
  const kernels = document.kernels.map(({ file }) => hashed(file));
  const documents = Array.from({ length: document.world }, (_, rank) => {
    const file = rankFile(rank);
    const own = formOf(folder, file, v.safeParse(rankDocument, unfoldLists(parsed(folder, file, hashed(file)))));
    checkRankDocument(own, document, rank, (found, expected) => planInvalid(folder, file, found, expected));
    return own;
  });
  checkSignals(documents, (found, expected) => planInvalid(folder, "plan.json", found, expected));
  return { document, hash: sha256(bytes), ranks: documents.map((own) => planRank(own, kernels)) };
}

function planRank(own: RankDocument, kernels: readonly string[]): PlanRank {
  const { statements, commands, memory, streams } = own;
  const flight = {
    streams: streams.map(({ name }) => name),
    statements,
    commands: commands.map(({ stream, kind, statement, needs }) => ({
      stream,
      kind,
      statement,
      ...(needs === undefined ? {} : { needs }),
    })),
  };
  return {
    ops: { ...own, kernels: own.kernels.map((number) => at(kernels, number)), teams: [] },
    notes: {
      rank: own.rank,
      world: own.world,
      commandCount: commands.length,
      kindOf: (command) => at(commands, command).kind,
      detailsOf: (command) => at(commands, command).details,
      statementOf: (command) => at(statements, at(commands, command).statement),
      flight: () => flight,
    },
    tensors: [...memory.in, ...memory.out, ...memory.copied],
  };
}

/** The version and the verdict are looked at before the form: another version may have another form. */
function planOf(folder: string, value: unknown): PlanDocument {
  const known = v.safeParse(v.object({ format: v.literal(planFormat), version: v.number() }), value);
  if (!known.success) planInvalid(folder, "plan.json", "no plan", `"format": "${planFormat}" and a version`);
  const { version } = known.output;
  if (version !== planVersion) {
    fail("plan-version", "a plan has another version", {
      place: planPlace(folder, "plan.json"),
      found: `version ${version}`,
      expected: `version ${planVersion}`,
      help: "make it again: braid compile FILE -o FOLDER, with this version of Braid",
    });
  }
  const verdict = v.safeParse(v.object({ verified: v.object({ ok: v.literal(true) }) }), value);
  if (!verdict.success) {
    fail("plan-unverified", "a plan is not verified", {
      place: planPlace(folder, "plan.json"),
      found: "no verified.ok that is true",
      expected: "a plan that the verifier has proved",
      help: "make it again: braid compile refuses programs with findings",
    });
  }
  formOf(folder, "plan.json", v.safeParse(planRecords, value));
  return formOf(folder, "plan.json", v.safeParse(planDocument, value));
}

function formOf<T>(folder: string, file: string, result: v.SafeParseResult<v.GenericSchema<unknown, T>>): T {
  if (result.success) return result.output;
  const [issue] = result.issues;
  const where = v.getDotPath(issue) ?? "the document";
  return planInvalid(folder, file, `${where}: ${issue.received}`, issue.expected ?? issue.message);
}

function textOf(folder: string, file: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return planInvalid(folder, file, "bytes that are no UTF-8", "a text in UTF-8");
  }
}

function parsed(folder: string, file: string, text: string): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    return planInvalid(folder, file, error instanceof Error ? error.message : "no JSON", "a JSON document");
  }
}

/** Reads a file of torch.export. */
import { fail } from "../../diagnostics/diagnostic.ts";
import type { ByteSource } from "../byte-source.ts";
import { type Archive, type ArchiveEntry, openArchive, parseDocument } from "./archive.ts";
import { type ExportedGraph, readGraph } from "./graph.ts";
import { withoutInPlace } from "./in-place.ts";
import { type WeightPayload, readPayloads } from "./weights.ts";

/** What a .pt2 file holds. */
export interface ExportedProgram {
  /** Of the file, for messages. */
  readonly path: string;
  /** Without in-place ops. */
  readonly graph: ExportedGraph;
  readonly payloads: ReadonlyMap<string, WeightPayload>;
}

/**
 * The program in a .pt2 file. `path` is for messages. Throws `model-syntax`, `model-invalid` and
 * `model-unsupported`.
 */
export function readExportedProgram(source: ByteSource, path = "model"): ExportedProgram {
  const archive = openArchive(source, path);
  const [model, document] = modelIn(archive);
  const read = readGraph(parseDocument(document, path, `models/${model}.json`));
  const [weights, others] = [readPayloads(archive, "weights", model), readPayloads(archive, "constants", model)];
  return {
    path,
    graph: { ...read, ...withoutInPlace(read) },
    payloads: new Map([...weights, ...others]),
  };
}

/** The name of the one model, and its document. Throws `model-unsupported`. */
function modelIn({ path, entries }: Archive): readonly [name: string, document: ArchiveEntry] {
  const names = [...entries.keys()];
  const models = [...entries].flatMap(([name, entry]): (readonly [string, ArchiveEntry])[] => {
    const [, model] = /^models\/([^/]+)\.json$/u.exec(name) ?? [];
    return model === undefined ? [] : [[model, entry]];
  });
  const [model] = models;
  if (model !== undefined && models.length === 1) return model;
  const has = (pattern: RegExp): boolean => names.some((name) => pattern.test(name));
  const found = (): string => {
    if (has(/serialized_exported_program\.json$/u)) return "a program in the format of PyTorch 2.8 or earlier";
    if (has(/^(?:data|constants)\.pkl$/u)) return "a file of torch.save or TorchScript";
    return "no models/*.json";
  };
  return fail({
    code: "model-unsupported",
    message: models.length > 1 ? "the file has several models" : "the archive is not one of torch.export",
    place: { kind: "file", path },
    found: models.length > 1 ? models.map(([name]) => name).join(", ") : found(),
    expected: "one model in the format of torch.export.save, of PyTorch 2.9 or later",
    help: "write it with torch.export.save(torch.export.export(model, args), path)",
  });
}

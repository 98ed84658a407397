/** The formats of model files, one row each. A row loads its reader when a file of the format is read. */
import type { ByteSource } from "./byte-source.ts";
import type { ImportedModel, ImportOptions } from "./model.ts";

interface LoaderOf<Content> {
  readonly name: string;
  /** How names of its files end. */
  readonly suffixes: readonly string[];
  /** Whether a file may have the format that begins like this, one character a byte, for a name that does not tell. */
  readonly magic: RegExp;
  /** Whether texts that begin so are of the format, even if their names are those of dumps. */
  readonly isCertain?: true;
  /** The number of devices that a file says at its start; null for one that has to be read. */
  readonly devices?: (model: Content) => number | null;
  /** The reader, which throws `model-syntax`, `model-unsupported`, `model-invalid`. */
  readonly reader: () => Promise<(model: Content, options: ImportOptions) => ImportedModel>;
  /** The options that not all formats take. */
  readonly options: readonly ("entry" | "plan" | "devices")[];
}

/** A format of model files. */
export type Loader =
  (LoaderOf<string> & { readonly content: "text" }) | (LoaderOf<ByteSource> & { readonly content: "bytes" });

export const loaders: readonly Loader[] = [
  {
    name: "StableHLO",
    suffixes: [".mlir"],
    magic: /^\s*(?:\/\/|module\b|#\w|sdy\.|func\.func\b|"(?:builtin|func)\.)/u,
    content: "text",
    devices: (text) => {
      const [, count] = /^module\b[^\n]*\bmhlo\.num_partitions = (\d+)/u.exec(text.slice(0, 4096)) ?? [];
      return count === undefined ? null : Number(count);
    },
    reader: async () => (await import("./stablehlo/import-stablehlo.ts")).importStablehlo,
    options: ["entry"],
  },
  {
    name: "torch.export",
    suffixes: [".pt2"],
    magic: /^PK\W{2}/u,
    content: "bytes",
    reader: async () => (await import("./torch-export/import-torch-export.ts")).importTorchExport,
    options: ["plan", "devices"],
  },
  {
    name: "PyTorch's FX graphs",
    suffixes: [".fx"],
    magic:
      /^\s*(?:ExportedProgram:|class [\w<>]+\(torch\.nn\.Module\):|def forward\(|(?:\[rank\d+\]:)?[CEIVW]\d{4} [^\n]*\[__\w+\] )/u,
    isCertain: true,
    content: "text",
    reader: async () => (await import("./torch-export/import-torch-export.ts")).importFxText,
    options: ["plan", "devices"],
  },
  {
    name: "nvFuser's FusionDefinition",
    suffixes: [".py"],
    magic: /^\s*(?:#|import\b|from\b|def \w+\(|with FusionDefinition)/u,
    content: "text",
    reader: async () => (await import("./fusion-definition/import-fusion-definition.ts")).importFusionDefinition,
    options: ["entry"],
  },
  {
    name: "nvFuser's Fusion IR",
    suffixes: [".fusion"],
    magic: /^\s*Inputs:\s/u,
    content: "text",
    reader: async () => (await import("./fusion-ir.ts")).importFusionIr,
    options: [],
  },
];

/** Records of a hang: no models. `braid verify` compares those of all ranks. */
export const flightRecords = {
  name: "PyTorch's flight recorder",
  magic:
    /^(?:\u0080\p{Cc}|\s*\{\s*"(?:comm_lib_version|entries|nccl_comm_state|nccl_version|pg_config|pg_status|version)")/u,
} as const;

/** Traces of a run: no models. `braid explain` explains those of all ranks. The first is compressed. */
export const profilerTraces = {
  name: "PyTorch's profiler",
  magic: /^(?:\p{Cc}\u008b|\s*\{\s*"schemaVersion"\s*:)/u,
} as const;

/** How files begin, in bytes: as much as tells their format. */
export const startBytes = 256;

/**
 * The loader for a file of this name, or for one of a name that any text may have which begins like `start`; null if no
 * format has such files.
 */
export function loaderOf(file: string, start = ""): Loader | null {
  const named = loaders.find(({ suffixes }) => suffixes.some((suffix) => file.endsWith(suffix)));
  const isText = /\.(?:txt|log|out)$/u.test(file);
  return named ?? (isText ? loaders.find(({ magic, isCertain }) => isCertain && magic.test(start)) : null) ?? null;
}

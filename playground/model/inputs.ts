/** What the compiler is given for a state. */
import { loaderOf, startBytes } from "../../src/import/loader.ts";
import { type Document, paneFor, type State } from "./state.ts";

export const usualDevices = 4;
export const usualProfile = "4xH200";

/** What a page shows of a document that nobody has changed. */
export function stateOf(document: Document, params: State["params"] = {}): State {
  const options = { on: "cuda" };
  const pane = paneFor(document, "fusion");
  return { document, options, params, profile: usualProfile, customProfile: null, edits: {}, rank: 0, pane };
}

/** Null for a dump or a model, which runs on as many as it names. */
export function devicesOf({ document, options }: State): number | null {
  const text = options["devices"];
  if (text !== undefined && /^\d+$/u.test(text) && Number(text) >= 1) return Number(text);
  return document.kind === "program" ? usualDevices : null;
}

export function profileTextOf({ profile, customProfile }: State, profiles: ReadonlyMap<string, string>): string {
  return customProfile ?? profiles.get(profile) ?? profiles.get(usualProfile) ?? "";
}

const gemm = { M: "16384", K: "8192", N: "4096" };
const block = { B: "1", L: "4096", H: "8192", HEADS: "64", FFN: "28672", DTYPE: "bfloat16" };

/** Sizes that keep a GPU busy, for the examples, whose own are made to run in a moment on a CPU. */
export const gpuSizes: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "allgather-matmul": { ...gemm, DTYPE: "bfloat16" },
  "ring-allgather-matmul": gemm,
  "matmul-allreduce": gemm,
  "matmul-reduce-scatter": gemm,
  "hosts/allgather-matmul": gemm,
  "hosts/llama": { ...block, GROUPS: "8" },
  "hosts/matmul-allreduce": gemm,
  "hosts/matmul-reduce-scatter": gemm,
  mlp: { M: "16384", K: "8192", H: "16384" },
  set: { M: "16384", N: "8192" },
  allgather: { M: "16384", N: "8192" },
  "reduce-scatter": { M: "16384", N: "8192" },
  allreduce: { M: "16384", N: "8192" },
  "hand-built": gemm,
  "nvfuser/allgather-matmul": gemm,
  "nvfuser/matmul-reduce-scatter-p2p": gemm,
  pipeline: { M: "16384", K: "4096", H: "16384", N: "4096" },
  "transformer/attention": { B: "1", L: "4096", H: "8192", HEADS: "64", DTYPE: "bfloat16" },
  "transformer/context-parallel": {
    B: "4",
    L: "8192",
    H: "4096",
    HEADS: "32",
    CAUSAL: "0",
    S: "4",
    DTYPE: "bfloat16",
    BACKWARD: "0",
  },
  "transformer/data-parallel": { L: "4096", H: "4096", FFN: "16384", DTYPE: "bfloat16" },
  "transformer/fsdp": { M: "32768", H: "8192" },
  "transformer/gpt-block": block,
  "transformer/hsdp": { LAYERS: "4", M: "32768", H: "8192" },
  "transformer/latent-attention": {
    B: "4",
    L: "4096",
    H: "7168",
    HEADS: "128",
    Q: "1536",
    KV: "512",
    D: "64",
    R: "64",
    S: "4",
    DTYPE: "bfloat16",
  },
  "transformer/llama-block": { ...block, GROUPS: "8" },
  "transformer/llama-decode": {
    B: "16",
    T: "4096",
    H: "4096",
    HEADS: "32",
    GROUPS: "8",
    FFN: "14336",
    DTYPE: "bfloat16",
  },
  "transformer/moe-experts": {
    T: "4096",
    H: "2048",
    FFN: "1408",
    E: "64",
    TOP: "6",
    C: "480",
    GROUPS: "8",
    TOP_GROUPS: "4",
    SHARED: "2",
    DTYPE: "bfloat16",
  },
  "transformer/mlp": { B: "1", L: "4096", H: "8192", FFN: "28672", DTYPE: "bfloat16" },
  "transformer/ring-attention": { HEADS: "16", L: "32768", D: "128" },
  "transformer/triangle-update": { N: "768", C: "128", S: "4", DTYPE: "bfloat16" },
  "transformer/ulysses": { B: "4", L: "16384", H: "4096", HEADS: "32", S: "4", DTYPE: "bfloat16", BACKWARD: "0" },
  "transformer/vocabulary-parallel": { T: "16384", V: "128256", H: "4096", S: "4", DTYPE: "bfloat16" },
  "transformer/weight-prefetch": { M: "16384", H: "8192" },
};

/** By its name and how it begins; what is none of the others is a dump, perhaps with other output around it. */
export function kindOfFile(name: string, text = ""): Document["kind"] | "profile" {
  if (name.endsWith(".json")) return "profile";
  if (loaderOf(name, text.slice(0, startBytes))?.content === "text") return "model";
  return /\.m?[jt]s$/u.test(name) ? "program" : "dump";
}

/** A text that replaced all of another one, in place of it. */
export function newDocument(text: string): Document {
  const isDump = /^%HostIrContainer\b/mu.test(text) && !/^export default\b/mu.test(text);
  const isModel = /^(?:module|func\.func|sdy\.mesh)\b/mu.test(text) && /\b(?:stablehlo|sdy)\./u.test(text);
  if (isModel) return { kind: "model", name: "untitled.mlir", text };
  if (kindOfFile("untitled.txt", text) === "model") return { kind: "model", name: "untitled.fx", text };
  return isDump ? { kind: "dump", name: "untitled.hir", text } : { kind: "program", name: "untitled.ts", text };
}

/** The number of hosts that `devicesPerHost` makes of the devices; 1 if they do not fill them, which compiling refuses. */
export function hostsOf({ options }: Pick<State, "options">, devices: number): number {
  const hosts = devices / Number(options.devicesPerHost ?? devices);
  return Number.isSafeInteger(hosts) && hosts > 0 ? hosts : 1;
}

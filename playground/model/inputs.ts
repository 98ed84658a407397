/** What the compiler is given for a state. */
import type { Document, State } from "./state.ts";

export const usualDevices = 4;
export const usualProfile = "4xH200";

/** What a page shows of a document that nobody has changed. */
export function stateOf(document: Document, params: State["params"] = {}): State {
  const options = { on: "cuda" };
  return { document, options, params, profile: usualProfile, customProfile: null, edits: {}, rank: 0, pane: "host" };
}

/** Null for a dump that runs on as many as it names. */
export function devicesOf({ document, options }: State): number | null {
  const text = options["devices"];
  if (text !== undefined && /^\d+$/u.test(text) && Number(text) >= 1) return Number(text);
  return document.kind === "dump" ? null : usualDevices;
}

export function profileTextOf({ profile, customProfile }: State, profiles: ReadonlyMap<string, string>): string {
  return customProfile ?? profiles.get(profile) ?? profiles.get(usualProfile) ?? "";
}

/** Sizes that keep a GPU busy, for the examples whose own are made to run in a moment on a CPU. */
export const gpuSizes: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "allgather-matmul": { M: "16384", K: "8192", N: "4096" },
  "ring-allgather-matmul": { M: "16384", K: "8192", N: "4096" },
  "matmul-allreduce": { M: "16384", K: "8192", N: "4096" },
  "matmul-reduce-scatter": { M: "16384", K: "8192", N: "4096" },
  "hosts/allgather-matmul": { M: "16384", K: "8192", N: "4096" },
  "hosts/matmul-allreduce": { M: "16384", K: "8192", N: "4096" },
  "hosts/matmul-reduce-scatter": { M: "16384", K: "8192", N: "4096" },
  mlp: { M: "16384" },
  "nvfuser/allgather-matmul": { M: "16384", K: "8192", N: "4096" },
  pipeline: { M: "16384", K: "4096", H: "16384", N: "4096" },
};

/** By the end of its name; what is neither a profile nor a module is a dump, perhaps with other output around it. */
export function kindOfFile(name: string): "program" | "dump" | "profile" {
  if (name.endsWith(".json")) return "profile";
  return /\.m?[jt]s$/u.test(name) ? "program" : "dump";
}

/** The number of hosts that `devicesPerHost` makes of the devices; 1 if they do not fill them, which compiling refuses. */
export function hostsOf({ options }: Pick<State, "options">, devices: number): number {
  const hosts = devices / Number(options.devicesPerHost ?? devices);
  return Number.isSafeInteger(hosts) && hosts > 0 ? hosts : 1;
}

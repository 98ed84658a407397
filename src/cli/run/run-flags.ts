/** The options of `braid run`, parsed. */
import type { NamesOf, Options } from "../../compile/options.ts";

export type RunFlags = Options<NamesOf<"run">>;

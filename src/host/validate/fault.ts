/** What is wrong with a host program, before it has a code and a place. */
import type { Diagnostic } from "../../diagnostics/diagnostic.ts";

export type Fault = Omit<Diagnostic, "code" | "place"> & Required<Pick<Diagnostic, "found" | "expected" | "help">>;

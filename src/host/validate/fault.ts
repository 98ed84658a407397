import type { Diagnostic } from "../../diagnostics/diagnostic.ts";
import type { Statement } from "../nodes.ts";

/** A fault of a statement, before it has a code and a place. */
export type Fault = Omit<Diagnostic, "code" | "place"> & Required<Pick<Diagnostic, "found" | "expected" | "help">>;

export type Report = (statement: Statement, fault: Fault) => void;

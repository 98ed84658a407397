/**
 * Turns a failed call of a GPU library into a Diagnostic: call, code, name, text, rank and, if one was under way, the
 * command.
 */
import { type Diagnostic, DiagnosticError, type Place } from "../../../diagnostics/diagnostic.ts";

export interface FailedCall {
  readonly rank: number;
  /** The C function. */
  readonly call: string;
  readonly status: number;
  /** The library's name of the status: `CUDA_ERROR_INVALID_VALUE`. */
  readonly name: string;
  /** The library's description of it. */
  readonly text: string;
}

export function callFailed({ rank, call, status, name, text }: FailedCall): never {
  throw new DiagnosticError([
    {
      code: "gpu-call-failed",
      message: `${call} failed on rank ${rank}`,
      place: { kind: "call", text: call },
      found: `${name} (${status})${text === "" ? "" : `: ${text}`}`,
      expected: "success",
      help: "see docs/gpu.md, Trouble-shooting; `braid doctor` shows driver and libraries",
    },
  ]);
}

/** The same error with the place it belongs to. Any other value is returned unchanged. */
export function failedAt(error: unknown, place: Place): unknown {
  if (!(error instanceof DiagnosticError)) return error;
  return new DiagnosticError(
    error.diagnostics.map((diagnostic): Diagnostic =>
      diagnostic.code === "gpu-call-failed"
        ? { ...diagnostic, place, notes: [...(diagnostic.notes ?? []), `in the call ${placeText(diagnostic)}`] }
        : diagnostic,
    ),
  );
}

function placeText({ place }: Diagnostic): string {
  return place?.kind === "call" ? place.text : "";
}

type AnyFunction = (...values: never[]) => unknown;

/** The functions of a table that return a status, as functions that throw instead. */
export type Checked<F> = {
  readonly [K in keyof F]: F[K] extends (...values: infer A) => number ? (...values: A) => void : F[K];
};

/** Wraps every function of the table: any status other than `success` goes to `failed`, which throws. */
export function checkedCalls<F>(functions: F, failed: (call: string, status: number) => never): Checked<F> {
  const entries = Object.entries<AnyFunction>(
    // oxlint-disable-next-line typescript/consistent-type-assertions -- a table of the FFI: every entry is a function
    functions as Readonly<Record<string, AnyFunction>>,
  );
  const wrapped = entries.map(([name, fn]) => [
    name,
    (...values: never[]): void => {
      const status = fn(...values);
      if (typeof status === "number" && status !== 0) failed(name, status);
    },
  ]);
  // oxlint-disable-next-line typescript/consistent-type-assertions -- the same keys, wrapped one by one
  return Object.fromEntries(wrapped) as Checked<F>;
}

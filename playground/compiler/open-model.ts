/** Reads a model file of another framework as a program. The page loads this file when the first model is opened. */
import { type Diagnostic, DiagnosticError } from "../../src/diagnostics/diagnostic.ts";
import { importModel } from "../../src/import/import-model.ts";
import type { Source } from "./messages.ts";

export type OpenedModel =
  | { readonly kind: "opened"; readonly source: Extract<Source, { kind: "built" }> }
  | { readonly kind: "refused"; readonly diagnostics: readonly Diagnostic[] };

export async function openModel(file: string, text: string): Promise<OpenedModel> {
  try {
    const { fusion, devices } = await importModel(text, { file });
    const data = { source: fusion.data(), reference: null, defaults: {} };
    return { kind: "opened", source: { kind: "built", data, ...(devices === null ? {} : { devices }) } };
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    return { kind: "refused", diagnostics: error.diagnostics };
  }
}

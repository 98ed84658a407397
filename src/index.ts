/** The public API of `braid`: runs in Node and in a browser. */
export { DiagnosticError, renderDiagnostic, type Diagnostic } from "./diagnostics/diagnostic.ts";
export { diagnosticCodes, type DiagnosticCode } from "./diagnostics/codes.ts";

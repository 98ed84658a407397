/** The verifier's report on the lists of all ranks. If they do not link, its findings are link's. */
import { type CommandList, DiagnosticError, link, verify, type VerifyReport } from "@braid-compiler/braid";
import { unlinkedReport } from "../../src/verify/verify.ts";

export function verifyLists(lists: readonly CommandList[]): VerifyReport {
  try {
    return verify(link(lists));
  } catch (error) {
    if (!(error instanceof DiagnosticError) || error.diagnostics.some(({ code }) => code !== "transfer-mismatch")) {
      throw error;
    }
    return unlinkedReport(lists, error);
  }
}

/** `--on` of the commands that measure a machine. */
import type { Target } from "../../compile/compile.ts";
import type { OptionValue } from "../../compile/options.ts";
import { fail } from "../../diagnostics/diagnostic.ts";

/** Throws `option-value` for MPI, which runs programs. */
export function measuredTarget(on: OptionValue<"on">): Target {
  if (on !== "mpi") return on;
  return fail({
    code: "option-value",
    message: "what is measured runs on one host",
    place: { kind: "option", text: "--on" },
    found: "--on mpi",
    expected: "--on cpu, or --on cuda",
    help: "run programs over MPI with braid run --on mpi",
  });
}

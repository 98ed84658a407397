/**
 * `braid/cuda`: the back end for NVIDIA GPUs. This version has none; opening it says so, so that `on: "cuda"` is a
 * clear error and not a missing module.
 */
import type { Backend } from "./backends/backend.ts";
import { DiagnosticError } from "./diagnostics/diagnostic.ts";

export const cudaBackend: Backend = {
  name: "cuda",
  open: () =>
    Promise.reject(
      new DiagnosticError([
        {
          code: "backend-unavailable",
          message: "this version of Braid has no CUDA back end",
          found: 'on: "cuda" (--on cuda)',
          expected: 'on: "cpu" (--on cpu)',
          help: "run on the CPU",
        },
      ]),
    ),
};

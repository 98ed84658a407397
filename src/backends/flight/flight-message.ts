/** What a main thread tells the thread that writes flight records in its place (src/launch/parent/parent-watch.ts). */
import type { FlightPlan } from "../../trace/flight/flight-plan.ts";
import type { FlightEntry } from "./flight-files.ts";

/** The words that the streams of a GPU write into pinned memory (src/backends/cuda/run/stuck/progress.ts). */
export interface GpuWords {
  readonly address: number;
  readonly streams: number;
}

export type FlightMessage =
  | {
      readonly kind: "open";
      readonly id: number;
      readonly folder: string;
      readonly entry: Omit<FlightEntry, "plan" | "standings"> & { readonly plan: FlightPlan };
      readonly gpu: GpuWords;
    }
  | { readonly kind: "release"; readonly id: number }
  /** The records of a failed run have been written. */
  | { readonly kind: "written" };

export function isFlightMessage(value: unknown): value is FlightMessage {
  return typeof value === "object" && value !== null && "kind" in value;
}

/**
 * The kinds of events of the Chrome Trace Event format that Braid writes, with its fields' names. Times are in
 * microseconds.
 */
import type { Arrow } from "./arrows.ts";
import type { SliceCategory } from "./slices.ts";

export type Arguments = Readonly<Record<string, string | number>>;

export interface Metadata {
  readonly ph: "M";
  readonly name: "process_name" | "process_labels" | "process_sort_index" | "thread_name" | "thread_sort_index";
  readonly pid: number;
  readonly tid?: number;
  readonly args: Arguments;
}
export interface Complete {
  readonly ph: "X";
  readonly name: string;
  readonly cat: SliceCategory;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur: number;
  readonly args: Arguments;
}
export interface FlowStart {
  readonly ph: "s";
  readonly name: Arrow["kind"];
  readonly cat: "order";
  readonly id: number;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
}
export interface FlowEnd extends Omit<FlowStart, "ph"> {
  readonly ph: "f";
  /** Ends at the slice that encloses it, not at the next one. */
  readonly bp: "e";
}
export interface Counter {
  readonly ph: "C";
  readonly name: "moved";
  readonly pid: number;
  readonly ts: number;
  /** Bytes of the copies and transfers that have ended. */
  readonly args: { readonly bytes: number };
}
export type ChromeEvent = Metadata | Complete | FlowStart | FlowEnd | Counter;

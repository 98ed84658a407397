/** Models of memory and communicators: Braid's, and PyTorch's, on which nvFuser runs its host programs. */
import type { OptionValue } from "./options.ts";

export interface MemoryModel {
  readonly allocator: OptionValue<"allocator">;
  readonly communicators: OptionValue<"communicators">;
}

export const memoryModels = {
  braid: { allocator: "braid", communicators: "team" },
  nvfuser: { allocator: "pytorch", communicators: "pair" },
} as const satisfies Readonly<Record<string, MemoryModel>>;

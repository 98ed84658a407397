/** Models of memory and communicators: Braid's, and PyTorch's, on which nvFuser runs its host programs. */
export interface MemoryModel {
  readonly allocator: "pytorch" | "braid";
  readonly communicators: "team" | "pair";
}

export const memoryModels = {
  braid: { allocator: "braid", communicators: "team" },
  nvfuser: { allocator: "pytorch", communicators: "pair" },
} as const satisfies Readonly<Record<string, MemoryModel>>;

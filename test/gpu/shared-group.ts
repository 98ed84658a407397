/**
 * One Group for many executors, so that communicators, mappings of peers' memory and compiled kernels are made once for
 * a whole list of cases.
 */
import type { Backend, Group } from "../../src/backends/backend.ts";

export interface SharedGroup {
  /** Its Groups' `close` does nothing. */
  readonly on: Backend;
  /** All ranks call it together. */
  readonly close: () => Promise<void>;
}

export function shareGroup(backend: Backend): SharedGroup {
  let opened: Promise<Group> | null = null;
  return {
    on: {
      name: backend.name,
      open: async (options) => {
        opened ??= backend.open(options);
        const group = await opened;
        return { prepare: (program) => group.prepare(program), close: async () => {} };
      },
    },
    close: async () => {
      await (await opened)?.close();
    },
  };
}

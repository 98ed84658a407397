/**
 * Handles, memory and mappings to release, in reverse order of creation. Node 20 has Symbol.dispose but no
 * DisposableStack.
 */
export interface Resources extends Disposable {
  /** Disposes of `resource` with the others; returns it. */
  own<T extends Disposable>(resource: T): T;
  /** Calls `release` with the others. */
  defer(release: () => void): void;
}

/** Every release is tried. The first error is thrown at the end. */
export function createResources(): Resources {
  const releases: (() => void)[] = [];
  return {
    own: (resource) => {
      releases.push(() => resource[Symbol.dispose]());
      return resource;
    },
    defer: (release) => {
      releases.push(release);
    },
    [Symbol.dispose]: () => {
      const errors: unknown[] = [];
      for (let release = releases.pop(); release !== undefined; release = releases.pop()) {
        try {
          release();
        } catch (error) {
          errors.push(error);
        }
      }
      if (errors.length > 0) throw errors[0];
    },
  };
}

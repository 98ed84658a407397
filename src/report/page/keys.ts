/** Keys that move the view while they are held: W, A, S, D and the arrow keys. */

/** Per second: the zoom doubles or halves twice, the view moves by its own width. */
const zoomRate = 2;
const moveRate = 1;

interface Motion {
  readonly zoom: number;
  readonly move: number;
}

const motions: ReadonlyMap<string, Motion> = new Map([
  ["w", { zoom: 1, move: 0 }],
  ["s", { zoom: -1, move: 0 }],
  ["a", { zoom: 0, move: -1 }],
  ["d", { zoom: 0, move: 1 }],
  ["arrowleft", { zoom: 0, move: -1 }],
  ["arrowright", { zoom: 0, move: 1 }],
]);

export interface HeldKeys {
  /** Whether the key is one of these. */
  readonly press: (key: string) => boolean;
  readonly release: (key: string) => void;
  readonly releaseAll: () => void;
}

/** `step` gets factors of zoom and parts of the view's width, once a frame. A tap moves by a tenth of a second. */
export function createHeldKeys(step: (zoom: number, move: number) => void): HeldKeys {
  const held = new Map<string, number>();
  let frame = 0;
  let last = 0;
  const advance = (seconds: number): void => {
    let [zoom, move] = [0, 0];
    for (const key of held.keys()) {
      const motion = motions.get(key);
      zoom += motion?.zoom ?? 0;
      move += motion?.move ?? 0;
    }
    step(2 ** (zoomRate * zoom * seconds), moveRate * move * seconds);
  };
  const run = (now: number): void => {
    advance(Math.min(0.1, (now - last) / 1000));
    last = now;
    frame = held.size === 0 ? 0 : requestAnimationFrame(run);
  };
  return {
    press: (key) => {
      const name = key.toLowerCase();
      if (!motions.has(name)) return false;
      if (held.has(name)) return true;
      held.set(name, performance.now());
      advance(0.1);
      last = performance.now();
      if (frame === 0) frame = requestAnimationFrame(run);
      return true;
    },
    release: (key) => {
      held.delete(key.toLowerCase());
    },
    releaseAll: () => {
      held.clear();
    },
  };
}

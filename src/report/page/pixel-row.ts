/**
 * A row of pixels, each of one colour: drawn with one call instead of one for each pixel, which takes a browser without
 * a GPU longer than all else.
 */
import { at } from "../../support/invariant.ts";

export interface PixelRow {
  /** Forgets the pixels of an earlier row. */
  readonly begin: (width: number) => void;
  /** `color`: as `rgb(1, 2, 3)`. */
  readonly set: (x: number, color: string, alpha: number) => void;
  /** Draws what was set, `height` pixels tall; nothing if nothing was. */
  readonly draw: (context: CanvasRenderingContext2D, y: number, height: number) => void;
}

export function createPixelRow(): PixelRow {
  const canvas = new OffscreenCanvas(1, 1);
  const own = canvas.getContext("2d");
  const known = new Map<string, readonly number[]>();
  let image = new ImageData(1, 1);
  let isEmpty = true;
  const partsOf = (color: string): readonly number[] => {
    const parts = known.get(color) ?? (color.match(/[\d.]+/gu) ?? ["0", "0", "0"]).map(Number);
    known.set(color, parts);
    return parts;
  };
  return {
    begin: (width) => {
      const whole = Math.max(1, Math.ceil(width));
      if (image.width === whole) {
        if (!isEmpty) image.data.fill(0);
      } else {
        image = new ImageData(whole, 1);
        canvas.width = whole;
      }
      isEmpty = true;
    },
    set: (x, color, alpha) => {
      if (x < 0 || x >= image.width) return;
      const parts = partsOf(color);
      const { data } = image;
      data[4 * x] = at(parts, 0);
      data[4 * x + 1] = at(parts, 1);
      data[4 * x + 2] = at(parts, 2);
      data[4 * x + 3] = 255 * alpha;
      isEmpty = false;
    },
    draw: (context, y, height) => {
      if (isEmpty || own === null) return;
      own.putImageData(image, 0, 0);
      context.imageSmoothingEnabled = false;
      context.drawImage(canvas, 0, 0, image.width, 1, 0, y, image.width, height);
    },
  };
}

/** The border between the program and the results: dragged, or moved by arrow keys. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";

const [least, usual, most, step] = [20, 39, 75, 2];

export function Splitter(): JSX.Element {
  const [percent, setPercent] = useState(usual);
  const place = (bar: HTMLElement, wanted: number): void => {
    const next = Math.min(most, Math.max(least, wanted));
    bar.parentElement?.style.setProperty("--split", `${next}%`);
    setPercent(next);
  };
  return (
    <div
      class="splitter"
      role="separator"
      tabIndex={0}
      aria-label="Width of the program"
      aria-orientation="vertical"
      aria-valuemin={least}
      aria-valuemax={most}
      aria-valuenow={Math.round(percent)}
      onPointerDown={({ currentTarget, pointerId }) => {
        currentTarget.setPointerCapture(pointerId);
      }}
      onPointerMove={({ currentTarget, pointerId, clientX }) => {
        if (currentTarget.hasPointerCapture(pointerId)) place(currentTarget, (100 * clientX) / innerWidth);
      }}
      onKeyDown={(event) => {
        const by = event.key === "ArrowLeft" ? -step : event.key === "ArrowRight" ? step : 0;
        if (by === 0) return;
        event.preventDefault();
        place(event.currentTarget, percent + by);
      }}
    />
  );
}

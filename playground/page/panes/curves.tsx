/** Predicted time over chunks, devices or a size, each point compiled anew. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { axesOf, type CurvePoint, pointsOf } from "../../model/curves.ts";
import { time } from "../../model/units.ts";
import { useStore } from "../hooks.ts";
import type { PageProps } from "../props.ts";
import type { Chart } from "./chart.ts";

interface Curve {
  readonly points: readonly CurvePoint[];
  /** Null where the program does not compile. */
  readonly milliseconds: readonly (number | null)[];
}

export function CurvesPane({ store }: PageProps): JSX.Element {
  const { history, results } = useStore(store);
  const { present } = history;
  const axes = axesOf(results.defaults);
  const [chosen, setChosen] = useState<string | null>(null);
  const axis = axes.find((name) => name === chosen) ?? axes[0] ?? "";
  const [curve, setCurve] = useState<Curve | null>(null);
  const { document: file, options, params, profile, customProfile } = present;
  useEffect(() => {
    const points = pointsOf(present, axis, results.defaults[axis]);
    setCurve(null);
    if (file.kind !== "program" || points.length === 0) return undefined;
    return store.curve(points, (milliseconds) => {
      setCurve({ points, milliseconds });
    });
    // Views of the same input have the same curve.
  }, [store, axis, file, options, params, profile, customProfile, results.defaults]);
  if (file.kind !== "program") return <p class="empty">A {file.kind} has its sizes, so there is nothing to vary.</p>;
  return (
    <>
      <div class="toolbar">
        <label class="picker">
          over
          <select
            value={axis}
            onChange={({ currentTarget }) => {
              setChosen(currentTarget.value);
            }}
          >
            {axes.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <span class="hint">Predicted time on {present.profile}, each point compiled anew.</span>
      </div>
      {curve === null ? <p class="empty">Compiling every point …</p> : <CurveView axis={axis} curve={curve} />}
    </>
  );
}

function CurveView({
  axis,
  curve: { points, milliseconds },
}: {
  readonly axis: string;
  readonly curve: Curve;
}): JSX.Element {
  const holder = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let chart: Chart | null = null;
    let ended = false;
    void import("./chart.ts").then(({ createChart }) => {
      if (!ended && holder.current !== null) {
        chart = createChart(holder.current, { axis, x: points.map(({ x }) => x), y: milliseconds });
      }
    });
    return () => {
      ended = true;
      chart?.destroy();
    };
  }, [axis, points, milliseconds]);
  const known = milliseconds.filter((each) => each !== null);
  const best = known.length === 0 ? null : Math.min(...known);
  return (
    <>
      <div class="chart" ref={holder} aria-hidden="true" />
      <table class="points">
        <thead>
          <tr>
            <th scope="col">{axis}</th>
            <th scope="col">predicted</th>
            <th scope="col">against the best</th>
          </tr>
        </thead>
        <tbody>
          {points.map(({ x }, i) => {
            const value = milliseconds[i] ?? null;
            return (
              <tr key={x} class={value === best ? "best" : ""}>
                <td>{x}</td>
                <td>{value === null ? "does not compile" : time(value)}</td>
                <td>{value === null || best === null ? "" : `${(value / best).toFixed(2)}×`}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </>
  );
}

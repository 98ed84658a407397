/** The Fusion: its ops, and how each tensor lies on the devices and in chunks. */
import type { JSX } from "preact";
import type { TensorPicture } from "../../compiler/parts.ts";
import type { PageProps } from "../props.ts";
import { useLinked, useStore } from "../hooks.ts";
import { variableNames } from "../../model/variable-names.ts";
import { LinkedText } from "./linked-text.tsx";
import { ShardingPicture } from "./sharding-picture.tsx";

export function FusionPane({ store, pointing }: PageProps): JSX.Element {
  const { history, results } = useStore(store);
  const { lowered } = results;
  const linked = useLinked(pointing);
  if (lowered === null) return <p class="empty">There is no program yet.</p>;
  if (!lowered.isFusion) {
    return <p class="empty">This program is written as host programs, so it has no Fusion. See the host program.</p>;
  }
  const variables = variableNames(history.present.document.text, lowered.tensors);
  const pointAt = (source: number | undefined): void => {
    pointing.point(source === undefined || source === 0 ? null : { kind: "source", line: source });
  };
  return (
    <>
      <h2>Tensors</h2>
      <Legend lowered={lowered.devices} />
      <p class="hint axes-help">
        The axes below a tensor are those of its loops: part i of <code class="axis did">ideviceIdx</code> is on device
        i, part i of <code class="axis stream">istreamIdx</code> is chunk i and runs on the next stream. An axis{" "}
        <code class="axis">iS</code> is not cut, and one that is summed over (<code class="axis reduced">rS</code>) is
        not stored. Numbers in braces are extents.
      </p>
      <div class="pictures">
        {lowered.tensors.map((tensor) => (
          <TensorCard
            key={tensor.id}
            tensor={tensor}
            variable={variables.get(tensor.id) ?? null}
            isLinked={tensor.source > 0 && linked.sources.includes(tensor.source)}
            point={(on) => {
              pointAt(on ? tensor.source : undefined);
            }}
          />
        ))}
      </div>
      <h2>Communication that the shardings need</h2>
      {lowered.reshardings.length === 0 ? (
        <p class="empty">Nothing moves between devices.</p>
      ) : (
        <ul class="reshardings">
          {lowered.reshardings.map((text) => (
            <li key={text}>{text}</li>
          ))}
        </ul>
      )}
      <h2>Ops</h2>
      <LinkedText
        lines={lowered.fusion}
        isLinked={({ sources }) => sources.some((line) => linked.sources.includes(line))}
        point={(line) => {
          pointAt(line?.sources[0]);
        }}
      />
    </>
  );
}

function Legend({ lowered }: { readonly lowered: number }): JSX.Element {
  const shown = Math.min(lowered, 16);
  return (
    <ul class="legend" aria-label="Colors of devices">
      {Array.from({ length: shown }, (_, device) => (
        <li key={device}>
          <span class={`swatch device-${device % 8}`} /> device {device}
        </li>
      ))}
      {shown < lowered && <li>… {lowered}</li>}
      <li>
        <span class="swatch whole" /> on all devices
      </li>
    </ul>
  );
}

interface CardProps {
  readonly tensor: TensorPicture;
  /** Null if the program's text has no name for it. */
  readonly variable: string | null;
  readonly isLinked: boolean;
  readonly point: (on: boolean) => void;
}

function TensorCard({ tensor, variable, isLinked, point }: CardProps): JSX.Element {
  return (
    <figure
      class={isLinked ? "card linked" : "card"}
      onMouseEnter={() => {
        point(true);
      }}
      onMouseLeave={() => {
        point(false);
      }}
    >
      <figcaption>
        <strong>{tensor.name}</strong> {variable !== null && <code class="variable">{variable}</code>}{" "}
        <span class="role">{tensor.role}</span>
        <code>
          {tensor.dtype} [
          {tensor.logical
            .filter(({ type }) => type !== "reduced")
            .map(({ extent }) => extent ?? "?")
            .join(", ")}
          ]
        </code>
      </figcaption>
      <ShardingPicture tensor={tensor} />
      <ul class="axes" aria-label="Loop axes">
        {tensor.loop.map(({ name, type }) => (
          <li key={name} class={`axis ${type.startsWith("DID") ? "did" : type.toLowerCase()}`} title={axisHelp(type)}>
            {name}
          </li>
        ))}
      </ul>
    </figure>
  );
}

function axisHelp(type: string): string {
  if (type.startsWith("DID")) return "part i is on device i of the mesh";
  if (type === "Stream") return "part i is chunk i, on stream i modulo the number of streams";
  return type === "reduced" ? "summed over: not in memory" : "local to a device";
}

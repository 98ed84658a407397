/** A counterexample, or any run, step by step: which command runs, what it reads and who wrote that, and what comes out. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Replay, ReplayRead, ReplayStep } from "../../compiler/parts.ts";
import { Icon } from "../icons.tsx";
import type { PageProps } from "../props.ts";
import type { Store } from "../store.ts";

export interface ReplayProps extends PageProps {
  readonly replay: Replay;
  readonly close: () => void;
}

/** Steps shown before and after the present one. */
const around = 3;

export function ReplayView({ store, replay, pointing, close }: ReplayProps): JSX.Element {
  const { steps } = replay;
  const wrong = steps.findIndex(({ isWrong }) => isWrong);
  const [position, setPosition] = useState(firstNamed(steps));
  useEffect(() => {
    setPosition(firstNamed(steps));
  }, [steps]);
  const at = Math.min(position, steps.length - 1);
  const step = steps[at];
  useEffect(() => {
    const command = step?.command ?? null;
    pointing.point(step === undefined || command === null ? null : { kind: "command", rank: step.rank, command });
  }, [step, pointing]);
  useEffect(
    () => () => {
      pointing.point(null);
    },
    [pointing],
  );
  if (step === undefined) return <p class="empty">No command runs before it.</p>;
  const move = (to: number): void => {
    setPosition(Math.max(0, Math.min(steps.length - 1, to)));
  };
  const from = Math.max(0, Math.min(at - around, steps.length - 2 * around - 1));
  return (
    <section class="replay" aria-label={replay.finding === null ? "Steps of a run" : "Replay of the counterexample"}>
      <div class="replay-bar">
        <button
          type="button"
          onClick={() => {
            move(at - 1);
          }}
          disabled={at === 0}
        >
          Back
        </button>
        <button
          type="button"
          onClick={() => {
            move(at + 1);
          }}
          disabled={at === steps.length - 1}
        >
          Step
        </button>
        <button
          type="button"
          onClick={() => {
            move(nextNamed(steps, at));
          }}
        >
          {replay.finding === null ? "Next kernel or transfer" : "Next of the finding"}
        </button>
        {wrong >= 0 && (
          <button
            type="button"
            class="danger"
            onClick={() => {
              move(wrong);
            }}
          >
            Where it goes wrong
          </button>
        )}
        <input
          type="range"
          min={0}
          max={steps.length - 1}
          value={at}
          aria-label="Step"
          onInput={({ currentTarget }) => {
            move(Number(currentTarget.value));
          }}
        />
        <output>
          step {at + 1} of {steps.length}
        </output>
        <button type="button" class="icon" aria-label="Close the replay" onClick={close}>
          <Icon name="cross" />
        </button>
      </div>
      <div class="replay-body">
        <ol class="steps" start={from + 1}>
          {steps.slice(from, from + 2 * around + 1).map((each, i) => (
            <StepRow key={from + i} step={each} isPresent={from + i === at} />
          ))}
        </ol>
        <StepMemory step={step} steps={steps} />
      </div>
      <Outcome store={store} replay={replay} />
    </section>
  );
}

function firstNamed(steps: readonly ReplayStep[]): number {
  return Math.max(
    0,
    steps.findIndex(({ isNamed }) => isNamed),
  );
}

function nextNamed(steps: readonly ReplayStep[], from: number): number {
  const next = steps.findIndex(({ isNamed }, i) => isNamed && i > from);
  return next < 0 ? firstNamed(steps) : next;
}

function StepRow({ step, isPresent }: { readonly step: ReplayStep; readonly isPresent: boolean }): JSX.Element {
  const { rank, streamName, phase, text, isNamed, isWrong } = step;
  return (
    <li
      class={[isNamed ? "named" : "", isWrong ? "wrong" : ""].join(" ")}
      aria-current={isPresent ? "step" : undefined}
    >
      <span class="who">
        rank {rank} · {streamName}
      </span>
      <span class="phase">{phase}</span>
      <code title={text}>{text}</code>
    </li>
  );
}

function StepMemory({
  step,
  steps,
}: {
  readonly step: ReplayStep;
  readonly steps: readonly ReplayStep[];
}): JSX.Element {
  return (
    <dl class="memory">
      {step.reads.map((read, i) => (
        <div key={`read ${i}`} class={!read.isInput && read.writtenBy.length === 0 ? "unwritten" : ""}>
          <dt>reads {read.slice}</dt>
          <dd>{writerText(read, steps)}</dd>
        </div>
      ))}
      {step.writes.map((slice, i) => (
        <div key={`write ${i}`}>
          <dt>
            {step.phase === "ends" ? "has written" : "writes"} {slice}
          </dt>
        </div>
      ))}
      {step.isWrong && (
        <div class="unwritten">
          <dt>The command that has to come before this one has not ended: nothing makes the stream wait for it.</dt>
        </div>
      )}
    </dl>
  );
}

function writerText({ writtenBy, isInput }: ReplayRead, steps: readonly ReplayStep[]): string {
  const last = writtenBy.at(-1);
  const writer = last === undefined ? undefined : steps[last];
  if (last === undefined || writer === undefined) {
    return isInput ? "an input" : "not written in this run yet";
  }
  return `written by rank ${writer.rank}, ${writer.streamName}, in step ${last + 1}: ${writer.text}`;
}

interface OutcomeProps {
  readonly store: Store;
  readonly replay: Replay;
}

function Outcome({ store, replay }: OutcomeProps): JSX.Element {
  const { finding, stopped, differences, withoutValues, isTooLarge } = replay;
  const hasSizes = Object.keys(store.history().present.params).length > 0;
  return (
    <ul class="outcome">
      {stopped !== null && <li class="wrong">The run stops: {stopped}.</li>}
      {withoutValues !== null && (
        <li>
          Outputs are not computed: {withoutValues}.{" "}
          {isTooLarge && hasSizes && (
            <button type="button" onClick={store.replayAtOwnSizes}>
              Compute at the program's own sizes
            </button>
          )}
        </li>
      )}
      {differences.map(({ name, elements, firstWrong, largestError }) => (
        <li key={name} class={firstWrong === null ? "right" : "wrong"}>
          {firstWrong === null
            ? `${name} is right${finding === null ? ", as in every order" : " after all: this order spoils bytes that do not reach it"}.`
            : `${name} is wrong: ${firstWrong}. The largest error of ${elements.toLocaleString("en-US")} elements is ${largestError.toPrecision(3)}.`}
        </li>
      ))}
    </ul>
  );
}

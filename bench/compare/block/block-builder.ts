/** Builds a block's Fusion with the names of what goes in and out. */
import { Fusion } from "../../../src/ir/api/fusion.ts";
import type { TensorView } from "../../../src/ir/api/tensor-view.ts";
import { DeviceMesh } from "../../../src/ir/device-mesh.ts";
import { byName, parametersOf } from "./block-layers.ts";
import type { BlockProblem } from "./block-problem.ts";
import type { BlockSizes } from "./models.ts";

export type BlockForm = "whole" | "compute-only" | "communication-only";

export interface BlockFusion {
  readonly form: BlockForm;
  readonly fusion: Fusion;
  /** Names of the inputs and the outputs. Inputs of one name and shape are one matrix in all forms. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
}

export class BlockBuilder {
  readonly fusion = new Fusion();
  readonly #problem: BlockProblem;
  readonly #form: BlockForm;
  readonly #inputs: string[] = [];
  readonly #outputs: string[] = [];

  constructor(problem: BlockProblem, form: BlockForm) {
    this.#problem = problem;
    this.#form = form;
  }

  input(name: string, shape: readonly number[]): TensorView {
    this.named(name);
    return this.fusion.input([...shape], this.#problem.dtype).named(name);
  }

  /** The name of an input that the Fusion has already. */
  named(name: string): void {
    this.#inputs.push(name);
  }

  /** Each of `share` devices' part of the parameters. */
  parameters(sizes: BlockSizes, share: number) {
    const parameters = parametersOf(sizes);
    const weights = parameters.map(({ name, shape, cut }) =>
      this.input(
        name,
        shape.map((extent, axis) => (axis === cut ? extent / share : extent)),
      ),
    );
    return { parameters, weights, of: byName(parameters, weights) };
  }

  onDevices(devices: number): void {
    const mesh = DeviceMesh.range(devices);
    for (const tensor of this.fusion.inputs) tensor.setDeviceMesh(mesh);
  }

  output(name: string, tensor: TensorView): this {
    this.fusion.output(tensor);
    this.#outputs.push(name);
    return this;
  }

  gradients(names: readonly string[], found: readonly (TensorView | null)[]): void {
    found.forEach((gradient, i) => {
      if (gradient !== null) this.output(`${names[i]} gradient`, gradient);
    });
  }

  done(): BlockFusion {
    return { form: this.#form, fusion: this.fusion, inputs: this.#inputs, outputs: this.#outputs };
  }
}

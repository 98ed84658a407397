/** Every layout of allgather + matmul gives the oracle's result in every form of the pipeline. */
import { it } from "vitest";
import { expectOracle } from "../support/expect-oracle.ts";
import { layoutFusion, layouts } from "../support/layout-fusions.ts";
import { combinations } from "../support/split-cases.ts";
import { sample } from "../support/suite.ts";
import { forms } from "./layout-forms.ts";

const title = "$layout.gathered gathered, operands $layout.operands, $form.0";

it.each(sample(combinations({ layout: layouts, form: forms }), 7))(title, async ({ layout, form }) => {
  const [, chunks, options] = form;
  // The counts of devices take turns, so that every form meets all of them over the layouts, and every layout over the forms.
  const number = forms.indexOf(form);
  const devices = 1 + ((number + layouts.indexOf(layout)) % 8);
  const fusion = layoutFusion(layout, { devices, chunks });
  await expectOracle(fusion, { devices, streams: 1 + (number % 4), accumulate: true, ...options });
});

/**
 * Written components as the data of `--json`. In: a component that has been written. Out: its file, size and world.
 */
import { describeWorld } from "../../component/wit/print.ts";
import type { WrittenComponent } from "../ops/make_component.ts";

/** The data of `component new` and `compose`. */
export function builtComponentData({ file, bytes, wit: { root, omitted } }: WrittenComponent): object {
  return { file, bytes, worlds: [...root.worlds.values()].map(describeWorld), omitted };
}

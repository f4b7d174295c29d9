/** The options of runs. Types alone: the commands name them, run.ts and the operations behind it read them. */
import type { EngineOptions } from "@waft/engine";
import type { NetworkOptions } from "@waft/component/wasi";
import type { LoadedProject } from "../../plugins/load.ts";
import type { GuestInputs } from "./run_module.ts";

/** Options of a run. */
export interface RunOptions extends GuestInputs {
  readonly engine: EngineOptions;
  readonly invoke?: string;
  /** The part of the network that a component reaches; modules reach none. */
  readonly network?: NetworkOptions;
  /** Treatment of unsatisfied imports: stub them with functions that trap, or refuse the run. */
  readonly unknownImports?: "trap" | "refuse";
  /** Run artifacts, too: machine code that was compiled before. */
  readonly allowPrecompiled?: boolean;
  /** Announces a slow operation; returns the function that announces its end. */
  readonly progress?: (what: string) => () => void;
  /** Writes a recording of the run; without it, nothing is recorded. */
  readonly record?: (log: Uint8Array) => void;
  /** A project with plugins; without it nothing of the plugin host is loaded. */
  readonly project?: LoadedProject;
}

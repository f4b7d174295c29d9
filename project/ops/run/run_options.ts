/**
 * The options of runs, and what a way to run a module gets. Types alone: the commands name them, program.ts and the
 * operations behind it read them.
 */
import type { Engine, EngineOptions, Module } from "@waft/engine";
import type { NetworkOptions } from "@waft/component/wasi";
import type { LoadedProject } from "../../plugins/load.ts";
import type { GrantedDrafts } from "./granted_drafts.ts";
import type { Preload } from "./preload.ts";
import type { GuestInputs, ImportStubs, PlannedCall } from "./run_module.ts";

/** Options of a run. */
export interface RunOptions extends GuestInputs {
  readonly engine: EngineOptions;
  readonly invoke?: string;
  /** Modules whose exports a module imports, by name. */
  readonly preloads?: readonly Preload[];
  /** The part of the network that a component reaches; a module only accepts connections. */
  readonly network?: NetworkOptions;
  /** The draft interfaces of WASI that a component gets; modules get none. */
  readonly drafts?: GrantedDrafts;
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
  /** Adds the user's own plugins that serve some of these namespaces to the project. */
  readonly userPlugins?: (wanted: readonly string[]) => Promise<LoadedProject | undefined>;
}

/** A compiled module, and the call that its run makes. */
export interface CompiledModule {
  readonly file: string;
  /** The content of the file: the module in either form, or an artifact. */
  readonly bytes: Uint8Array;
  readonly module: Module;
  /** The engine that compiled it. */
  readonly engine: Engine;
  /** The words after the file. */
  readonly args: readonly string[];
  readonly call: PlannedCall;
  /** Functions for imports that nothing else provides. */
  readonly stubs: ImportStubs;
}

/** One way to run a compiled module. Resolves to the lines to print. */
export type ModuleRunner = (compiled: CompiledModule, options: RunOptions) => Promise<string[]>;

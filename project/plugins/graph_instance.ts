/**
 * Instances as a graph calls them: of plugins and of the guest, of modules and of components.
 *
 * In: an instance of a module. Out: one interface to both forms. Invariant: a function has one name in a graph,
 * which does not depend on the form of its plugin.
 */
import type { Context, Instance } from "@waft/engine";
import type { FuncType } from "@waft/component/internal/model/types";

/** A function of an instance, as JavaScript calls it. */
export type Callable = (...args: unknown[]) => unknown;

/** An instance that a graph calls: a plugin's or the guest's, of a module or a component. */
export interface CalledInstance {
  call(context: Context, name: string, ...args: unknown[]): unknown;
  callAsync(context: Context, name: string, ...args: unknown[]): Promise<unknown>;
  close(): void;
}

/**
 * The instance of a plugin. Functions of components have the names that modules export,
 * `<contract>@<major>#<function>`.
 */
export interface GraphInstance extends CalledInstance {
  /** Whether it exports the function. */
  has(name: string): boolean;
  /** An exported function, for calls that do not wait. */
  function(name: string): Callable;
  /** The type of a function of a component. */
  type?(name: string): FuncType;
}

/** The instance of a module in a graph. */
export class ModuleInstance implements GraphInstance {
  readonly instance: Instance;

  constructor(instance: Instance) {
    this.instance = instance;
  }

  has(name: string): boolean {
    return typeof this.instance.exports[name] === "function";
  }

  function(name: string): Callable {
    return this.instance.exports[name] as Callable;
  }

  call(context: Context, name: string, ...args: unknown[]): unknown {
    return this.instance.call(context, name, ...args);
  }

  callAsync(context: Context, name: string, ...args: unknown[]): Promise<unknown> {
    return this.instance.callAsync(context, name, ...args);
  }

  close(): void {
    this.instance.close();
  }
}

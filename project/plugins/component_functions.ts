/**
 * The functions of a component plugin by the names of contracts, `<namespace>#<function>`. In: the types of the
 * component's exports, by their own names, and the interfaces that provide namespaces. Out: the base of instances,
 * wherever they run. Invariant: the error case of a `result` is a value.
 */
import { ComponentError } from "@waft/component/internal/abi/traps";
import type { FuncType } from "@waft/component/internal/model/types";
import { isLifecycle } from "../definitions/wit_interfaces.ts";
import type { ComponentPart } from "./component_part.ts";

/** The calls of the engine, by the names that modules export for them. */
const ENGINE_CALLS: ReadonlyMap<string, string> = new Map([["waft:self@1#init", "init"], ["waft:self@1#stop", "stop"]]);

/** The base of an instance of a component plugin. */
export abstract class ComponentFunctions {
  readonly #types: ReadonlyMap<string, FuncType>;
  readonly #provides: ComponentPart["provides"];

  constructor(types: ReadonlyMap<string, FuncType>, provides: ComponentPart["provides"]) {
    this.#types = types;
    this.#provides = provides;
  }

  has(name: string): boolean {
    return this.#types.has(this.own(name));
  }

  type(name: string): FuncType {
    return this.#types.get(this.own(name))!;
  }

  /** The component's own name of a function; "" if it has no such function of the engine. */
  protected own(name: string): string {
    const engineCall = ENGINE_CALLS.get(name);
    if (engineCall !== undefined) {
      const names = [...this.#types.keys()];
      return names.find((own) => own.endsWith(`#${engineCall}`) && isLifecycle(own.split("#")[0])) ?? "";
    }
    const at = name.lastIndexOf("#");
    return `${this.#provides.get(name.slice(0, at)) ?? ""}${name.slice(at)}`;
  }

  protected returnsResult(name: string): boolean {
    return this.type(name).result?.kind === "result";
  }
}

/** A value as a case of a `result`. */
export const ok = (val: unknown) => ({ tag: "ok", val });

/** A ComponentError as the other case; throws any other error. */
export function failed(error: unknown) {
  if (error instanceof ComponentError) return { tag: "err", val: error.payload };
  throw error;
}

/** The index spaces of one component instance while it is being linked. */
import type { Module } from "@waft/engine";
import type { ComponentInstance } from "../async/component_instance.ts";
import type { CoreFunction } from "../async/core_function.ts";
import type { CoreSort, Sort } from "../model/definitions.ts";
import type { ComponentItem, FuncItem, InstanceItem, Item } from "./items.ts";
import { TypeSpace } from "./type_space.ts";

/** Exports of a core instance, by name. */
export type CoreExports = Readonly<Record<string, unknown>>;

export class Scope {
  readonly instance: ComponentInstance;
  readonly parent: Scope | undefined;
  readonly types: TypeSpace;
  readonly funcs: FuncItem[] = [];
  readonly instances: InstanceItem[] = [];
  readonly components: ComponentItem[] = [];
  readonly coreModules: Module[] = [];
  readonly coreInstances: CoreExports[] = [];
  readonly core: Record<Exclude<CoreSort, "type" | "module" | "instance">, unknown[]> = {
    func: [],
    table: [],
    memory: [],
    global: [],
    tag: [],
  };
  readonly exports: Map<string, Item> = new Map();

  constructor(instance: ComponentInstance, parent: Scope | undefined) {
    this.instance = instance;
    this.parent = parent;
    this.types = new TypeSpace(parent?.types);
  }

  outer(count: number): Scope {
    return count === 0 ? this : this.parent!.outer(count - 1);
  }

  coreFunc(index: number): CoreFunction {
    return this.core.func[index] as CoreFunction;
  }

  /** The item of `sort` at `index`. */
  item(sort: Sort, index: number): Item {
    switch (sort) {
      case "func":
        return this.funcs[index];
      case "instance":
        return this.instances[index];
      case "component":
        return this.components[index];
      case "type":
        return { sort: "type", type: this.types.get(index) };
      case "core module":
        return { sort: "core module", module: this.coreModules[index] };
      default:
        throw new TypeError(`A ${sort} cannot be passed to a component`);
    }
  }

  /** Appends an item to the index space of its sort. */
  add(item: Item): void {
    switch (item.sort) {
      case "func":
        this.funcs.push(item);
        return;
      case "instance":
        this.instances.push(item);
        return;
      case "component":
        this.components.push(item);
        return;
      case "type":
        this.types.add(item.type);
        return;
      case "core module":
        this.coreModules.push(item.module);
    }
  }
}

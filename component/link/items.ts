/** The things that a component defines, imports and exports, at run time. */
import type { Module } from "@waft/engine";
import type { Component } from "../model/definitions.ts";
import type { FuncType } from "../model/types.ts";
import type { FuncInst } from "../async/task.ts";
import type { ComponentInstance } from "../async/component_instance.ts";
import type { RuntimeType } from "./type_space.ts";
import type { Scope } from "./scope.ts";
import type { HostFunction, LiftedFunction } from "./lifted_function.ts";

/** A component function. */
export interface FuncItem {
  readonly sort: "func";
  /** The type in the terms of the instance that defines it. */
  readonly type: FuncType;
  /** Starts a call that may block. */
  readonly start: FuncInst;
  /** The core function and options of a lifted function. */
  readonly lifted?: LiftedFunction;
  /** The function of the host; a `result` is a value with a tag. */
  readonly host?: HostFunction;
  /** The function as the host gave it, which throws the error of a `result`. */
  readonly plain?: HostFunction;
}

export interface InstanceItem {
  readonly sort: "instance";
  readonly exports: ReadonlyMap<string, Item>;
}

/** A component and the scope that its outer aliases refer to. */
export interface ComponentItem {
  readonly sort: "component";
  readonly component: Component;
  readonly scope: Scope | undefined;
  /** The instance that defines it, which is the parent of its instances. */
  readonly parent: ComponentInstance | undefined;
}

interface TypeItem {
  readonly sort: "type";
  readonly type: RuntimeType;
}

interface ModuleItem {
  readonly sort: "core module";
  readonly module: Module;
}

export type Item = FuncItem | InstanceItem | ComponentItem | TypeItem | ModuleItem;

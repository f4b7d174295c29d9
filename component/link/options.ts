/**
 * Canonical options at run time. In: the memory, the core functions and the string encoding that a definition names.
 * Out: an environment for generated code, once per direction. Invariant: while `realloc` runs, its instance may not
 * call imports, and its thread has fresh context slots.
 */
import { Memory } from "@waft/engine";
import { I64 } from "@waft/engine/internal/wasm/types";
import { GuestMemory } from "../abi/guest_memory.ts";
import { addressOf, type PointerType } from "../abi/layout.ts";
import type { AbiEnv } from "../abi/runtime.ts";
import type { Template } from "../abi/generated.ts";
import type { StringEncoding } from "../model/canon.ts";
import type { ComponentInstance } from "../async/component_instance.ts";
import type { CoreFunction } from "../async/core_function.ts";
import { codecOf } from "./codecs.ts";

export class RuntimeOptions {
  readonly instance: ComponentInstance;
  readonly encoding: StringEncoding;
  readonly pointer: PointerType;
  readonly memory: Memory | undefined;
  readonly isAsync: boolean;
  readonly postReturn: CoreFunction | undefined;
  readonly callback: CoreFunction | undefined;
  readonly guest: GuestMemory;
  readonly realloc: CoreFunction | undefined;

  constructor(
    instance: ComponentInstance,
    given: {
      encoding: StringEncoding;
      isAsync: boolean;
      memory: unknown;
      realloc: CoreFunction | undefined;
      postReturn: CoreFunction | undefined;
      callback: CoreFunction | undefined;
    },
  ) {
    this.instance = instance;
    this.encoding = given.encoding;
    this.isAsync = given.isAsync;
    this.memory = given.memory instanceof Memory ? given.memory : undefined;
    this.pointer = this.memory?.type.limits.address === I64 ? "i64" : "i32";
    this.realloc = given.realloc;
    this.postReturn = given.postReturn;
    this.callback = given.callback;
    this.guest = new GuestMemory(this.memory, this.pointer, this.#allocator(given.realloc));
  }

  #allocator(realloc: CoreFunction | undefined) {
    if (realloc === undefined) return undefined;
    const { instance, pointer } = this;
    const call = pointer === "i32"
      ? (a: number, b: number, c: number, d: number) => (realloc(a, b, c, d) as number) >>> 0
      : (a: number, b: number, c: number, d: number) =>
        addressOf(realloc(BigInt(a), BigInt(b), BigInt(c), BigInt(d)) as bigint);
    return (old: number, oldBytes: number, align: number, bytes: number): number => {
      instance.mayLeave = false;
      const { current } = instance.store;
      const allocate = () => call(old, oldBytes, align, bytes);
      const result = current === undefined ? allocate() : current.withFreshStorage(allocate);
      instance.mayLeave = true;
      return result;
    };
  }

  /** Binds a template to these options, for values of another component or of JavaScript. */
  bind<T>(template: Template<T>, foreign: boolean): T {
    const { instance, guest, encoding } = this;
    const env: AbiEnv = {
      memory: guest,
      encoding,
      foreign,
      handles: template.handles.map((type) => codecOf(type, instance, foreign)),
    };
    return template.bind(env);
  }
}

/**
 * Type reflection of the JavaScript interface (proposal "JS Types", phase 3), which `configure` switches on: the method
 * `type` of memories, tables, globals, tags and functions, types in the lists of a module's imports and exports, the
 * class WebAssembly.Function, and `minimum` in descriptors. In: the interfaces of the namespace. Out: the same with
 * these members.
 *
 * Invariant: without the switch, nothing of this is visible, and exported functions inherit from Function.prototype.
 */
import { ByteWriter } from "../base/bytes.ts";
import { writeSubType } from "../binary/types.ts";
import { EXTERN } from "../runtime/instance/externals.ts";
import { funcInfo, givePrototype } from "../runtime/instance/func.ts";
import { CONSTANT } from "../wasm/constant_reader.ts";
import { EXTERN_KIND, type ExternKind } from "../wasm/module.ts";
import { HEADER, SECTION } from "../wasm/section_ids.ts";
import {
  FUNCREF,
  type FuncType,
  type GlobalType,
  I64,
  type Limits,
  type MemoryType,
  type TableType,
  type ValType,
  valTypeName,
} from "../wasm/types.ts";
import { Tag, TAGS } from "./exception.ts";
import { Global, GLOBALS } from "./global.ts";
import { Instance } from "./instance.ts";
import { defineInterface, descriptorForm, fromAddress, requireObject, sequence } from "./interface.ts";
import { MEMORIES, Memory } from "./memory.ts";
import { externTypes, Module } from "./module.ts";
import { Table, TABLES } from "./table.ts";
import { valueType } from "./value_types.ts";

type AnyFunction = (...args: unknown[]) => unknown;

/** The name of a value type in the JavaScript interface. */
function nameOf(type: ValType): string {
  return type === FUNCREF ? "funcref" : valTypeName(type);
}

function functionType({ params, results }: FuncType): object {
  return { parameters: params.map(nameOf), results: results.map(nameOf) };
}

/** The sizes of a type; `minimum` is the present size where an object is asked. */
function sizes({ address, min, max }: Limits, minimum: number = Number(min)): object {
  const wide = address === I64;
  return {
    minimum: fromAddress(minimum, wide),
    ...(max === undefined ? {} : { maximum: wide ? max : Number(max) }),
    ...(wide ? { address: "i64" } : {}),
  };
}

function memoryType({ limits, shared }: MemoryType, pages?: number): object {
  return { ...sizes(limits, pages), ...(shared ? { shared } : {}) };
}

function tableType({ limits, element }: TableType, length?: number): object {
  return { ...sizes(limits, length), element: nameOf(element) };
}

function globalType({ type, mutable }: GlobalType): object {
  return { mutable, value: nameOf(type) };
}

/** The type of an import or export as the interface shows it. */
function shownType(kind: ExternKind, type: unknown): object {
  switch (kind) {
    case "func":
      return functionType(type as FuncType);
    case "memory":
      return memoryType(type as MemoryType);
    case "table":
      return tableType(type as TableType);
    case "global":
      return globalType(type as GlobalType);
    case "tag":
      return { parameters: (type as FuncType).params.map(nameOf) };
  }
}

/** Opcodes of the bodies of wrappers. */
const LOCAL_GET = 0x20;
const CALL = 0x10;

/** Modules whose export calls their import, by type. */
const WRAPPERS = new Map<string, Module>();

/** A module with a function of type `type` that calls an import of the same type. */
function wrapperOf(type: FuncType): Uint8Array {
  const out = new ByteWriter();
  out.raw(Uint8Array.from(HEADER));
  /** A section that is a vector of one entry. */
  const section = (id: number, write: () => void) => {
    out.u8(id);
    const mark = out.beginSized();
    out.u32(1);
    write();
    out.endSized(mark);
  };
  section(SECTION.type, () => writeSubType(out, { final: true, supertypes: [], composite: type }));
  section(SECTION.import, () => {
    out.name("");
    out.name("f");
    out.u8(EXTERN_KIND.func);
    out.u32(0);
  });
  section(SECTION.function, () => out.u32(0));
  section(SECTION.export, () => {
    out.name("f");
    out.u8(EXTERN_KIND.func);
    out.u32(1);
  });
  section(SECTION.code, () => {
    const body = out.beginSized();
    out.u32(0);
    type.params.forEach((_, i) => {
      out.u8(LOCAL_GET);
      out.u32(i);
    });
    out.u8(CALL);
    out.u32(0);
    out.u8(CONSTANT.END);
    out.endSized(body);
  });
  return out.finish();
}

/** An exported function of type `type` that calls `callable`. */
function wrapped(type: FuncType, callable: AnyFunction): AnyFunction {
  const key = `${type.params.join()}>${type.results.join()}`;
  let module = WRAPPERS.get(key);
  if (module === undefined) {
    module = new Module(wrapperOf(type));
    WRAPPERS.set(key, module);
  }
  const { exports } = new Instance(module, { "": { f: callable } });
  return (exports as { f: AnyFunction }).f;
}

/** WebAssembly.Function: the class of exported functions. */
class WasmFunction {
  constructor(type: unknown, callable: unknown) {
    const where = "WebAssembly.Function()";
    const { parameters, results } = requireObject(type, `${where}: the first argument`);
    const types = (names: unknown, property: string) =>
      sequence(names, `${where}: the property '${property}'`)
        .map((name) => valueType(name, `${where}: a type of '${property}'`));
    const signature: FuncType = {
      kind: "func",
      params: types(parameters, "parameters"),
      results: types(results, "results"),
    };
    if (typeof callable !== "function") throw new TypeError(`${where}: the second argument must be a function`);
    // A function of WebAssembly converts the values once more, as its type may be another.
    const called = funcInfo(callable) === undefined ? callable : (...args: unknown[]) => callable(...args);
    return wrapped(signature, called as AnyFunction) as unknown as WasmFunction;
  }

  /** The parameters and results. */
  type(): object {
    const info = funcInfo(this);
    if (info === undefined) {
      throw new TypeError("WebAssembly.Function.type(): the receiver must be a WebAssembly.Function");
    }
    return functionType(info.type);
  }
}

/** Adds methods to a prototype as Web IDL prescribes. */
function addMethods(prototype: object, methods: Readonly<Record<string, AnyFunction>>): void {
  for (const [name, value] of Object.entries(methods)) {
    Object.defineProperty(prototype, name, { value, writable: true, enumerable: true, configurable: true });
  }
}

/** Switches type reflection on, for `namespace` and the functions that instances make from now on. */
export function reflectTypes(namespace: object): void {
  if ("Function" in namespace) return;
  addMethods(Memory.prototype, {
    type(this: unknown) {
      const memory = MEMORIES.require(this, "WebAssembly.Memory.type(): the receiver");
      return memoryType(memory.type, memory.pages);
    },
  });
  addMethods(Table.prototype, {
    type(this: unknown) {
      const table = TABLES.require(this, "WebAssembly.Table.type(): the receiver");
      return tableType(table[EXTERN].type, table.length);
    },
  });
  addMethods(Global.prototype, {
    type(this: unknown) {
      return globalType(GLOBALS.require(this, "WebAssembly.Global.type(): the receiver")[EXTERN].type);
    },
  });
  addMethods(Tag.prototype, {
    type(this: unknown) {
      return shownType("tag", TAGS.require(this, "WebAssembly.Tag.type(): the receiver").type);
    },
  });
  externTypes.shown = shownType;
  descriptorForm.reflects = true;
  Object.setPrototypeOf(WasmFunction, Function);
  Object.setPrototypeOf(WasmFunction.prototype, Function.prototype);
  Object.defineProperty(WasmFunction, "name", { value: "Function", configurable: true });
  defineInterface("Function", WasmFunction);
  givePrototype(WasmFunction.prototype);
  Object.defineProperty(namespace, "Function", { value: WasmFunction, writable: true, configurable: true });
}

/**
 * Types as text, with the module's names for type indices and fields (specification, 6.4).
 */
import type { Module } from "../wasm/module.ts";
import { inexact, isExact } from "../wasm/exact_heap.ts";
import {
  exactHeapOf,
  type FieldType,
  type FuncType,
  type GlobalType,
  heapOf,
  type HeapType,
  heapTypeName,
  I64,
  isNullable,
  isRef,
  type Limits,
  type MemoryType,
  type SubType,
  type TableType,
  type ValType,
  valTypeName,
} from "../wasm/types.ts";
import { IndexNames } from "./print_names.ts";

export class TypePrinter {
  readonly types: IndexNames;
  readonly #module: Module;
  readonly #fields: Map<number, IndexNames> = new Map();

  constructor(module: Module) {
    this.#module = module;
    this.types = new IndexNames(module.names.types);
  }

  /** Names of the fields of structure type `index`. */
  fields(index: number): IndexNames {
    let fields = this.#fields.get(index);
    if (fields === undefined) {
      fields = new IndexNames(this.#module.names.fields.get(index));
      this.#fields.set(index, fields);
    }
    return fields;
  }

  heapType(heap: HeapType): string {
    if (isExact(heap)) return `(exact ${this.types.ref(inexact(heap))})`;
    return heap >= 0 ? this.types.ref(heap) : heapTypeName(heap);
  }

  /** `(ref null? heap)`, always in full. */
  refType(nullable: boolean, heap: HeapType): string {
    return `(ref ${nullable ? "null " : ""}${this.heapType(heap)})`;
  }

  valType(type: ValType): string {
    return isRef(type) && heapOf(type) >= 0 ? this.refType(isNullable(type), exactHeapOf(type)) : valTypeName(type);
  }

  /** ` (param …)` of several types in one group, or nothing. */
  group(keyword: string, types: readonly ValType[]): string {
    return types.length === 0 ? "" : ` (${keyword} ${types.map((type) => this.valType(type)).join(" ")})`;
  }

  /** Groups in which each named type is alone; `first` is the index of the first type in `names`. */
  namedGroups(keyword: string, types: readonly ValType[], names: IndexNames, first: number): string {
    let text = "";
    for (let i = 0; i < types.length;) {
      if (names.has(first + i)) {
        text += ` (${keyword}${names.optionalBinder(first + i)} ${this.valType(types[i])})`;
        i++;
        continue;
      }
      const start = i;
      while (i < types.length && !names.has(first + i)) i++;
      text += this.group(keyword, types.slice(start, i));
    }
    return text;
  }

  /** The function type at a type index, if it is one. */
  funcTypeAt(index: number): FuncType | undefined {
    const composite = this.#module.types[index]?.composite;
    return composite?.kind === "func" ? composite : undefined;
  }

  /** ` (type $t) (param …) (result …)`. */
  typeUse(index: number): string {
    const type = this.funcTypeAt(index);
    const inline = type === undefined ? "" : this.group("param", type.params) + this.group("result", type.results);
    return ` (type ${this.types.ref(index)})${inline}`;
  }

  /** `(type $t …)`. */
  definition(index: number, type: SubType): string {
    const text = this.#clause("describes", type.describes) + this.#clause("descriptor", type.descriptor) +
      this.#composite(index, type);
    const plain = type.final && type.supertypes.length === 0;
    const supertypes = type.supertypes.map((supertype) => this.types.ref(supertype) + " ").join("");
    const sub = plain ? text : `(sub ${type.final ? "final " : ""}${supertypes}${text})`;
    return `(type${this.types.binder(index)} ${sub})`;
  }

  /** `(word $t) `, or nothing. */
  #clause(word: string, index: number | undefined): string {
    return index === undefined ? "" : `(${word} ${this.types.ref(index)}) `;
  }

  #composite(index: number, { composite }: SubType): string {
    switch (composite.kind) {
      case "func":
        return `(func${this.group("param", composite.params)}${this.group("result", composite.results)})`;
      case "struct": {
        const names = this.fields(index);
        const fields = composite.fields.map((field, i) => ` (field${names.optionalBinder(i)} ${this.#field(field)})`);
        return `(struct${fields.join("")})`;
      }
      case "array":
        return `(array ${this.#field(composite.field)})`;
      case "cont":
        return `(cont ${this.types.ref(composite.func)})`;
    }
  }

  #field({ storage, mutable }: FieldType): string {
    return mutable ? `(mut ${this.valType(storage)})` : this.valType(storage);
  }

  globalType({ type, mutable }: GlobalType): string {
    return mutable ? `(mut ${this.valType(type)})` : this.valType(type);
  }

  memoryType({ limits, shared, pageSize }: MemoryType): string {
    const size = pageSize === undefined ? "" : ` (pagesize ${pageSize})`;
    return limitsText(limits) + (shared ? " shared" : "") + size;
  }

  tableType({ limits, element }: TableType): string {
    return `${limitsText(limits)} ${this.valType(element)}`;
  }
}

function limitsText({ address, min, max }: Limits): string {
  return `${address === I64 ? "i64 " : ""}${min}${max === undefined ? "" : ` ${max}`}`;
}

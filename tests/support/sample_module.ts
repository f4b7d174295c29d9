/**
 * Modules for the validator's tests. In: a list of fields. Out: a Module; function bodies are assembled from lists of
 * mnemonics and immediates. Only tests import this.
 */
import { ByteWriter } from "../../engine/base/bytes.ts";
import { emptyModule, type Expr, type Module } from "../../engine/wasm/module.ts";
import { rowByMnemonic } from "../../engine/wasm/opcodes.ts";
import { type CompositeType, type FuncType, I32, type SubType, type ValType } from "../../engine/wasm/types.ts";

/** A mnemonic, or an immediate byte (bytes of longer LEBs one by one). */
export type Code = readonly (string | number)[];

/** The bytes of `code`. */
function assemble(code: Code): Uint8Array {
  const writer = new ByteWriter();
  for (const item of code) {
    if (typeof item === "number") {
      writer.u8(item);
      continue;
    }
    const row = rowByMnemonic(item);
    if (row === undefined) throw new Error(`no row is named ${item}`);
    if (row.prefix === 0) writer.u8(row.code);
    else {
      writer.u8(row.prefix);
      writer.u32(row.code);
    }
  }
  return writer.finish();
}

/** An expression that ends with `end`, at offset `offset` of a fictitious module. */
export function expr(code: Code, offset = 0x200): Expr {
  return { bytes: assemble([...code, "end"]), offset };
}

/** A function body at offset `offset`, with one run of locals per `[count, type bytes]`. */
export function body(code: Code, locals: readonly number[][] = [], offset = 0x1000): Expr {
  return { bytes: assemble([locals.length, ...locals.flat(), ...code, "end"]), offset };
}

/** A function type. */
export function funcType(params: ValType[] = [], results: ValType[] = []): FuncType {
  return { kind: "func", params, results };
}

/** A final type without supertypes. */
export function plain(composite: CompositeType): SubType {
  return { final: true, supertypes: [], composite };
}

/** A module that consists of `fields`; every type is a group of its own unless `fields.recGroups` says otherwise. */
export function sampleModule(fields: Partial<Module> = {}): Module {
  const types = fields.types ?? [];
  return {
    ...emptyModule(new Uint8Array(8)),
    types,
    recGroups: types.map((_, start) => ({ start, count: 1 })),
    ...fields,
  };
}

/** Limits with 32-bit addresses. */
export function limits(min: number, max?: number) {
  return { address: I32, min: BigInt(min), ...(max === undefined ? {} : { max: BigInt(max) }) } as const;
}

/**
 * The translation of valid bodies: reads them and reports their instructions to their visitor, which is the translator
 * itself (instructions.ts). In: the facts about a module, its bodies, and the static types that validation found for
 * the operands of casts. Out: IrFunctions.
 *
 * Relies on: the bodies are valid, also those that are inlined; nothing is checked here.
 */
import { Bug } from "../base/errors.ts";
import type { IrFunction } from "../ir/function.ts";
import { BodyReader } from "../wasm/body_reader.ts";
import type { BodyVisitor } from "./body_visitor.ts";
import { ACTION, ACTION_OF, IS_CAST, KIND_OF } from "./frame_actions.ts";
import { InstructionTranslator } from "./instructions.ts";
import { translateLoopEntry } from "./loop_entry.ts";
import { type ModuleFacts, paramCount, resultCount } from "./module_facts.ts";

/** The static types of the operands of a module's tests and casts. */
export interface CastTypes {
  /** Absolute offsets of the instructions, ascending. */
  readonly at: Int32Array;
  /** Heap types of the operands, and 1 for those that may be null. */
  readonly heap: Int32Array;
  readonly isNullable: Uint8Array;
}

/** The bodies of a module. */
export interface ValidBodies {
  /** The bytes of all bodies; function k has those from start[k] to before start[k + 1]. */
  readonly bytes: Uint8Array;
  readonly start: Int32Array;
  readonly casts: CastTypes;
}

/** Translates bodies; a subclass knows their bytes. */
export abstract class BodyTranslator extends InstructionTranslator {
  casts!: CastTypes;
  /** By depth of inlining: the reader of the open body. */
  readonly #readers: BodyReader[] = [];
  readonly #locals: number[] = [];

  /** The bytes of the body of defined function `definedIndex`. */
  abstract bodyBytes(definedIndex: number): Uint8Array;

  /** Translates defined function `definedIndex` of `env` into `f`, which is reset. */
  translateBody(env: ModuleFacts, casts: CastTypes, definedIndex: number, f: IrFunction): void {
    this.casts = casts;
    this.prepare(env, definedIndex, f);
    this.visitBody(definedIndex, this);
    this.complete(definedIndex);
  }

  /** The same for the function from the loop at offset `at` on; see {@linkcode translateLoopEntry}. */
  translateBodyLoop(env: ModuleFacts, casts: CastTypes, definedIndex: number, at: number, f: IrFunction): boolean {
    this.casts = casts;
    return translateLoopEntry(this, env, definedIndex, at, f);
  }

  openBody(definedIndex: number): void {
    this.#open(this.reader, definedIndex);
  }

  #open(reader: BodyReader, definedIndex: number): void {
    const bytes = this.bodyBytes(definedIndex);
    reader.reset(bytes, 0, bytes.length, this.env.bodyOffset[definedIndex]);
  }

  visitBody(definedIndex: number, visitor: BodyVisitor): void {
    while (this.#readers.length <= this.inlineDepth) this.#readers.push(new BodyReader());
    const reader = this.#readers[this.inlineDepth];
    this.#open(reader, definedIndex);
    const funcIndex = this.env.importedFuncCount + definedIndex;
    const params = paramCount(this.env, funcIndex);
    const locals = this.#locals;
    locals.length = 0;
    for (let k = 0; k < params; k++) locals.push(0);
    reader.readLocals(locals);
    visitor.begin(funcIndex, params, resultCount(this.env, funcIndex), locals);
    let depth = 1;
    while (depth > 0) {
      const id = reader.next();
      if (id < 0) throw new Bug("A valid body ends within an instruction");
      switch (ACTION_OF[id]) {
        case ACTION.ENTER:
          depth++;
          this.#enterFrame(reader, KIND_OF[id], visitor);
          break;
        case ACTION.ELSE:
          visitor.otherwise(reader.at);
          break;
        case ACTION.CATCH:
          visitor.handler(reader.imm.index, reader.at);
          break;
        case ACTION.CATCH_ALL:
          visitor.handler(-1, reader.at);
          break;
        case ACTION.END:
          depth--;
          visitor.end(reader.at, -1);
          break;
        case ACTION.DELEGATE:
          depth--;
          visitor.end(reader.at, reader.imm.index);
          break;
        default:
          if (IS_CAST[id] !== 0) this.#readOperandType(reader);
          visitor.instruction(id, reader.imm, reader.at);
      }
    }
  }

  /** Opens a frame for `visitor` with the block type that was read. */
  #enterFrame(reader: BodyReader, kind: number, visitor: BodyVisitor): void {
    const { env } = this;
    const { imm, at } = reader;
    const type = imm.blockTypeIndex;
    if (type >= 0) {
      const { params, results } = env.signatures[env.typeSignature[type]];
      visitor.enter(kind, params.length, results.length, imm, at);
    } else visitor.enter(kind, 0, type === -1 ? 0 : 1, imm, at);
  }

  /** Sets the static type of the operand of the cast that was read. */
  #readOperandType(reader: BodyReader): void {
    const { at, heap, isNullable } = this.casts;
    let first = 0;
    for (let end = at.length; first < end;) {
      const middle = (first + end) >> 1;
      if (at[middle] < reader.at) first = middle + 1;
      else end = middle;
    }
    if (first === at.length) return;
    reader.imm.heap2 = heap[first];
    reader.imm.nullable2 = isNullable[first] !== 0;
  }
}

/** Translates the bodies of a description (module_description.ts). */
export class ValidBodyTranslator extends BodyTranslator {
  #bodies!: ValidBodies;

  /** Translates defined function `definedIndex` of `env`, with the bodies `bodies`, into `f`, which is reset. */
  translate(env: ModuleFacts, bodies: ValidBodies, definedIndex: number, f: IrFunction): void {
    this.#bodies = bodies;
    this.translateBody(env, bodies.casts, definedIndex, f);
  }

  /** The same for the function from the loop at offset `at` on. */
  translateLoop(env: ModuleFacts, bodies: ValidBodies, definedIndex: number, at: number, f: IrFunction): boolean {
    this.#bodies = bodies;
    return this.translateBodyLoop(env, bodies.casts, definedIndex, at, f);
  }

  bodyBytes(definedIndex: number): Uint8Array {
    const { bytes, start } = this.#bodies;
    return bytes.subarray(start[definedIndex], start[definedIndex + 1]);
  }
}

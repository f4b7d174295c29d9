/**
 * The translation of bodies that are valid already: it reads them itself and reports their instructions as validation
 * does (validate/visitor.ts). In: the facts about a module, its bodies, and the static types that validation found for
 * the operands of casts. Out: IrFunctions, equal to those that function.ts makes.
 */
import { Bug } from "../base/errors.ts";
import type { IrFunction } from "../ir/function.ts";
import { BodyReader } from "./body_reader.ts";
import type { BodyVisitor } from "./body_visitor.ts";
import { ACTION, ACTION_OF, IS_CAST, KIND_OF } from "./frame_actions.ts";
import { InstructionTranslator } from "./instructions.ts";
import { translateLoopEntry } from "./loop_entry.ts";
import { type ModuleFacts, paramCount, resultCount } from "./module_facts.ts";

/** The bodies of a module. */
export interface ValidBodies {
  /** The bytes of all bodies; function k has those from start[k] to before start[k + 1]. */
  readonly bytes: Uint8Array;
  readonly start: Int32Array;
  /** Absolute offsets of tests and casts, ascending; heap types of their operands, and 1 for those that may be null. */
  readonly castAt: Int32Array;
  readonly castHeap: Int32Array;
  readonly castIsNullable: Uint8Array;
}

export class ValidBodyTranslator extends InstructionTranslator {
  #bodies!: ValidBodies;
  /** By depth of inlining: the reader of the open body. */
  readonly #readers: BodyReader[] = [];
  readonly #locals: number[] = [];

  /** Translates defined function `definedIndex` of `env`, with the bodies `bodies`, into `f`, which is reset. */
  translate(env: ModuleFacts, bodies: ValidBodies, definedIndex: number, f: IrFunction): void {
    this.#bodies = bodies;
    this.prepare(env, definedIndex, f);
    this.visitBody(definedIndex, this);
    this.complete(definedIndex);
  }

  /** The same for the function from the loop at offset `at` on; see {@linkcode translateLoopEntry}. */
  translateLoop(env: ModuleFacts, bodies: ValidBodies, definedIndex: number, at: number, f: IrFunction): boolean {
    this.#bodies = bodies;
    return translateLoopEntry(this, env, definedIndex, at, f);
  }

  openBody(definedIndex: number): void {
    this.#open(this.reader, definedIndex);
  }

  #open(reader: BodyReader, definedIndex: number): void {
    const { bytes, start } = this.#bodies;
    const body = bytes.subarray(start[definedIndex], start[definedIndex + 1]);
    reader.reset(body, 0, this.env.bodyOffset[definedIndex]);
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
    reader.locals(locals);
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
    const { castAt, castHeap, castIsNullable } = this.#bodies;
    let first = 0;
    for (let end = castAt.length; first < end;) {
      const middle = (first + end) >> 1;
      if (castAt[middle] < reader.at) first = middle + 1;
      else end = middle;
    }
    if (first === castAt.length) return;
    reader.imm.heap2 = castHeap[first];
    reader.imm.nullable2 = castIsNullable[first] !== 0;
  }
}

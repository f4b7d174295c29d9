/**
 * Variables of a stopped program for display. In: a session and a frame. Out: trees of named values, each read on
 * request.
 */
import type { ExternGlobal } from "@waft/engine";
import { F32, F64, I32, I64, V128, valTypeName } from "@waft/engine/internal/wasm/types";
import type { FrameAccess } from "./dwarf/locations.ts";
import type { Frame, Session } from "./session.ts";
import { bitsOf, readNumber, valueText, writeNumber } from "./values.ts";
import type { Variable } from "./variable.ts";

const NUMERIC = [I32, I64, F32, F64];

/** A group of variables. */
interface VariableScope {
  readonly name: string;
  /** Reading it is slow, or the list is long. */
  readonly expensive: boolean;
  readonly variables: () => readonly Variable[];
}

/** The groups whose variables belong to a frame. */
export const SCOPES_OF_FRAMES: ReadonlySet<string> = new Set(["Locals", "Module locals"]);

/** The most parts of an aggregate in a line of text, and the most levels of them. */
const INLINE_PARTS = 6;
const INLINE_LEVELS = 2;
/** The texts of aggregates that say nothing about their parts, after the name of a variant. */
const OPAQUE = /^(\w* ?)(?:\{…\}|\(…\)|\[\d+\])$/;

/** The value of a variable on one line: structures and arrays with their first parts. */
export function inlineText({ text, parts }: Variable, levels: number = INLINE_LEVELS): string {
  const name = OPAQUE.exec(text)?.[1];
  if (parts === undefined || levels === 0 || name === undefined) return text;
  const all = parts();
  const isRecord = text.endsWith("}");
  const shown = all.slice(0, INLINE_PARTS).map((part) => {
    const value = inlineText(part, levels - 1);
    return isRecord ? `${part.name}: ${value}` : value;
  });
  if (all.length > shown.length) shown.push("…");
  const list = shown.join(", ");
  return name + (isRecord ? `{${list}}` : text.endsWith(")") ? `(${list})` : `[${list}]`);
}

/** The groups of variables that a frame sees: those of the source, where they are known, before the module's. */
export function scopesOf(session: Session, frame: Frame): VariableScope[] {
  const own = () => localsOf(session, frame);
  const { sourceVariables } = session.program;
  const access = accessOf(session, frame);
  const memory = () => session.memories[0]?.bytes ?? new Uint8Array(0);
  const known = sourceVariables?.locals(access, memory);
  const globals = { name: "Globals", expensive: true, variables: () => globalsOf(session) };
  if (sourceVariables === undefined || known === undefined) {
    return [{ name: "Locals", expensive: false, variables: own }, globals];
  }
  return [
    { name: "Locals", expensive: false, variables: () => sourceVariables.locals(access, memory) ?? [] },
    { name: "Statics", expensive: true, variables: () => sourceVariables.statics(access, memory) },
    { name: "Module locals", expensive: true, variables: own },
    globals,
  ];
}

/** A frame as the expressions of debugging information see it. */
function accessOf(session: Session, frame: Frame): FrameAccess {
  const { program } = session;
  const slotOf = (index: number) => frame.func.locals[index];
  return {
    pc: program.instrumented.offsets[frame.location] - program.codeOffset,
    local: (index) => {
      const slot = slotOf(index);
      const value = slot === undefined ? undefined : session.local(frame, slot);
      return slot === undefined || value === undefined ? undefined : bitsOf(value, slot.type);
    },
    global: (index) => {
      const value = session.globals[index]?.value;
      return typeof value === "number" || typeof value === "bigint" ? BigInt(value) : undefined;
    },
    setLocal: (index, text) => {
      const slot = slotOf(index);
      if (slot !== undefined) session.setLocal(frame, slot, text);
    },
    memory: session.memories[0]?.bytes ?? new Uint8Array(0),
  };
}

function localsOf(session: Session, frame: Frame): Variable[] {
  return frame.func.locals.map((slot, index) => {
    const name = session.program.localName(frame.func, index);
    const type = valTypeName(slot.type);
    const value = session.local(frame, slot);
    if (value === undefined) return { name, type, text: "(reference)" };
    return { name, type, text: valueText(value), value, set: (text) => session.setLocal(frame, slot, text) };
  });
}

function globalsOf(session: Session): Variable[] {
  return session.globals.map((global, index) => globalVariable(session.program.globalName(index), global));
}

function globalVariable(name: string, global: ExternGlobal): Variable {
  const type = global.type;
  if (type.endsWith(valTypeName(V128))) return { name, type, text: "(vector)" };
  const { value } = global;
  if (typeof value !== "number" && typeof value !== "bigint") {
    return { name, type, text: value === null ? "null" : "(reference)" };
  }
  const isInteger = type.endsWith("i32");
  return {
    name,
    type,
    text: valueText(value),
    value: isInteger ? BigInt(value) : value,
    ...(type.startsWith("mut ") ? { set: (text: string) => setGlobal(global, text) } : {}),
  };
}

/**
 * Changes a numeric global. Throws a SyntaxError if the text is not a number, a RangeError if its value does not fit
 * the type.
 */
function setGlobal(global: ExternGlobal, text: string): void {
  const type = NUMERIC.find((each) => global.type.endsWith(valTypeName(each))) ?? V128;
  const scratch = new DataView(new ArrayBuffer(8));
  writeNumber(scratch, 0, type, text);
  const value = readNumber(scratch, 0, type);
  global.value = type === I32 ? Number(value) : value;
}

/**
 * JavaScript values → WAVE text. In: a value in the form that exported functions return, and its type. Out: text on one
 * line, which read.ts reads back to the same value. A map is a list of pairs.
 */
import { camelCase } from "../abi/names.ts";
import { type ResourceType, type ValType, valueOperands } from "../model/types.ts";
import { WAVE_KEYWORDS } from "./wave_cursor.ts";

/** Kinds of types whose values have no text: they are objects of the host or of the component. */
const OPAQUE: ReadonlySet<string> = new Set(["own", "borrow", "stream", "future", "error-context"]);

/** Whether values of `type` have a text. */
export function isPrintable(type: ValType): boolean {
  return !OPAQUE.has(type.kind) && valueOperands<ValType, ResourceType>(type).every(isPrintable);
}

/** The text of a value of `type`. */
export function printWave(value: unknown, type: ValType): string {
  switch (type.kind) {
    case "string":
      return `"${escape(value as string, '"')}"`;
    case "char":
      return `'${escape(value as string, "'")}'`;
    case "f32":
    case "f64":
      return floatText(value as number, type.kind === "f32");
    case "list":
      return `[${Array.from(value as ArrayLike<unknown>, (item) => printWave(item, type.element)).join(", ")}]`;
    case "map":
      return `[${
        [...value as Map<unknown, unknown>].map(([k, v]) => `(${printWave(k, type.key)}, ${printWave(v, type.value)})`)
          .join(", ")
      }]`;
    case "tuple":
      return `(${type.types.map((of, k) => printWave((value as unknown[])[k], of)).join(", ")})`;
    case "record":
      return `{${
        type.fields.map(({ name, type }) => `${label(name)}: ${printWave(property(value, name), type)}`).join(", ")
      }}`;
    case "flags":
      return `{${type.names.filter((name) => property(value, name) === true).map(label).join(", ")}}`;
    case "enum":
      return label(value as string);
    case "variant": {
      const { tag, val } = value as Case;
      return withPayload(label(tag), val, type.cases.find(({ name }) => name === tag)?.type);
    }
    case "option":
      return optionText(value, type.type);
    case "result": {
      const { tag, val } = value as Case;
      return withPayload(tag, val, tag === "ok" ? type.ok : type.err);
    }
    default:
      return String(value);
  }
}

interface Case {
  readonly tag: string;
  readonly val?: unknown;
}

function property(value: unknown, name: string): unknown {
  return (value as Record<string, unknown>)[camelCase(name)];
}

function withPayload(name: string, value: unknown, type: ValType | undefined): string {
  return type === undefined ? name : `${name}(${printWave(value, type)})`;
}

function optionText(value: unknown, type: ValType): string {
  if (type.kind !== "option") return value === undefined || value === null ? "none" : `some(${printWave(value, type)})`;
  const { tag, val } = value as Case;
  return tag === "none" ? "none" : `some(${printWave(val, type)})`;
}

function label(name: string): string {
  return WAVE_KEYWORDS.has(name) ? `%${name}` : name;
}

const ESCAPES: Readonly<Record<string, string>> = { "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r" };

/** Escapes backslashes, the quote, and characters that a terminal acts upon. */
function escape(text: string, quote: string): string {
  return text.replace(/[\\'"]|[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => {
    if (character === '"' || character === "'") return character === quote ? `\\${quote}` : character;
    return ESCAPES[character] ?? `\\u{${character.codePointAt(0)!.toString(16)}}`;
  });
}

/** The shortest decimal that reads back to the same float. */
function floatText(value: number, isSingle: boolean): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (Object.is(value, -0)) return "-0";
  if (!isSingle) return String(value);
  for (let digits = 1; digits < 9; digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return String(Number(text));
  }
  return String(Number(value.toPrecision(9)));
}

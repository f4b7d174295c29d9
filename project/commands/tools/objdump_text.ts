/**
 * A dumped file as lines in the form of `wasm-objdump`, and as the data of `--json`. In: the parts of a file and the
 * views that are asked for. Out: lines, made one by one. Text of the file is escaped. Throws the first fault of the
 * file after the lines of everything before it.
 */
import type { WaftError } from "@waft/engine/internal/errors";
import type { DumpedFunction, DumpedPart, DumpedSection, ObjectDump } from "../../ops/inspection/object_dump.ts";
import { hexLines, hexText } from "../../ops/inspection/hex_lines.ts";
import { safe } from "../../base/terminal.ts";

/** The parts of the output. */
export interface ObjdumpViews {
  readonly headers: boolean;
  readonly details: boolean;
  readonly disassemble: boolean;
  readonly contents: boolean;
  /** Names of sections, in any case; all if empty. */
  readonly sections: readonly string[];
}

/** Bytes of an instruction on one line. */
const CODE_BYTES = 9;
const NAME_WIDTH = 9;

/** The lines of a file. */
export function* objdumpLines(file: string, dump: ObjectDump, views: ObjdumpViews): Iterable<string> {
  const wanted = chosenSections(dump, views.sections);
  const faults = dump.fault === undefined ? [] : [dump.fault];
  for (const part of dump.parts) {
    const sections = part.sections.filter(wanted);
    if (part.path.length > 0 && sections.length === 0) continue;
    yield "";
    yield `${safe(file)}${partName(part)}:\tfile format ${part.kind === "component" ? "component" : "wasm"} 0x${
      hex(part.version)
    }`;
    if (views.headers) yield* headerLines(sections);
    if (views.details) yield* detailLines(sections);
    if (views.disassemble && hasCode(part, sections)) yield* codeLines(part, faults);
    if (views.contents) yield* contentLines(sections);
  }
  const fault = firstFault(faults);
  if (fault !== undefined) throw fault;
}

/** Whether a section is shown. Throws if no section has one of the names. */
function chosenSections({ parts }: ObjectDump, names: readonly string[]) {
  const matches = (name: string, section: DumpedSection) =>
    section.customName === name || section.name.toLowerCase() === SYNONYMS[name.toLowerCase()] ||
    section.name.toLowerCase() === name.toLowerCase();
  for (const name of names) {
    if (!parts.some(({ sections }) => sections.some((section) => matches(name, section)))) {
      throw new Error(`no section is named ${JSON.stringify(name)}`);
    }
  }
  return (section: DumpedSection) => names.length === 0 || names.some((name) => matches(name, section));
}

/** Names of the specification that wasm-objdump shortens. */
const SYNONYMS: Readonly<Record<string, string>> = { element: "elem", "data count": "datacount" };

function firstFault(faults: readonly WaftError[]): WaftError | undefined {
  return [...faults].sort((a, b) => (a.place.offset ?? 0) - (b.place.offset ?? 0))[0];
}

function hex(value: number, digits = 1): string {
  return value.toString(16).padStart(digits, "0");
}

function partName({ kind, path, offset }: DumpedPart): string {
  return path.length === 0 ? "" : `: ${kind} ${path.join(".")} at 0x${hex(offset)}`;
}

function* headerLines(sections: readonly DumpedSection[]): Iterable<string> {
  yield "";
  yield "Sections:";
  yield "";
  const width = sections.reduce((most, { name }) => Math.max(most, name.length), NAME_WIDTH);
  for (const { name, customName, offset, bytes, count } of sections) {
    const place = `start=0x${hex(offset, 8)} end=0x${hex(offset + bytes, 8)} (size=0x${hex(bytes, 8)})`;
    const label = customName === undefined ? "" : ` ${safe(JSON.stringify(customName))}`;
    yield `${name.padStart(width)} ${place}${count === undefined ? "" : ` count: ${count}`}${label}`;
  }
}

function* detailLines(sections: readonly DumpedSection[]): Iterable<string> {
  yield "";
  yield "Section Details:";
  yield "";
  for (const { name, count, entries } of sections) {
    yield `${name}${count === undefined ? "" : `[${count}]`}:`;
    for (const line of entries()) yield safe(line);
  }
}

/** Whether the code section is among the sections that are shown. */
function hasCode({ kind }: DumpedPart, sections: readonly DumpedSection[]): boolean {
  return kind === "core module" && sections.some(({ name }) => name === "Code");
}

/** The functions; the first fault of each is added to `faults`. */
function* codeLines({ functions }: DumpedPart, faults: WaftError[]): Iterable<string> {
  yield "";
  yield "Code Disassembly:";
  yield "";
  for (const func of functions()) {
    const { index, name, offset, code } = func;
    yield `${hex(offset, 6)} func[${index}]${name === undefined ? "" : ` <${safe(name)}>`}:`;
    for (const { offset, bytes, text } of listing(func)) {
      for (let at = 0; at === 0 || at < bytes.length; at += CODE_BYTES) {
        const row = hexText(bytes.subarray(at, at + CODE_BYTES), " ").padEnd(3 * CODE_BYTES - 1);
        yield ` ${hex(offset + at, 6)}: ${row} | ${at === 0 ? safe(text) : ""}`.trimEnd();
      }
    }
    if (code.fault !== undefined) {
      faults.push(code.fault);
      yield ` ${hex(code.fault.place.offset ?? offset, 6)}: ${safe(code.fault.message)}`;
    }
  }
}

/** The declarations of locals, if there are any, and the instructions of a function. */
function* listing({ offset, bytes, code }: DumpedFunction) {
  const { locals, lines, offsets, end } = code;
  const extent = (from: number, to: number) => ({ offset: from, bytes: bytes.subarray(from - offset, to - offset) });
  if (locals.length > 0) yield { ...extent(offset, offsets[0] ?? end), text: `local ${runs(locals).join(", ")}` };
  for (let k = 0; k < lines.length; k++) {
    yield { ...extent(offsets[k], offsets[k + 1] ?? end), text: lines[k] };
  }
}

/** Types of locals, those of equal type in one word. */
function runs(types: readonly string[]): string[] {
  const words: string[] = [];
  for (let from = 0, to = 0; from < types.length; from = to) {
    while (to < types.length && types[to] === types[from]) to++;
    words.push(to - from === 1 ? types[from] : `${to - from} × ${types[from]}`);
  }
  return words;
}

function* contentLines(sections: readonly DumpedSection[]): Iterable<string> {
  for (const { name, customName, offset, content } of sections) {
    yield "";
    yield `Contents of section ${customName === undefined ? name : `${name} ${safe(JSON.stringify(customName))}`}:`;
    yield* hexLines(content, offset);
  }
}

/** The data of `--json`, and the first fault. */
export function objdumpData(dump: ObjectDump, views: ObjdumpViews): { data: object; fault: WaftError | undefined } {
  const wanted = chosenSections(dump, views.sections);
  const faults = dump.fault === undefined ? [] : [dump.fault];
  const parts = dump.parts.map((part) => {
    const sections = part.sections.filter(wanted);
    const { kind, path, offset, bytes, version } = part;
    return {
      kind,
      path,
      offset,
      bytes,
      version,
      sections: sections.map((section) => sectionData(section, views)),
      ...(views.disassemble && hasCode(part, sections) ? { functions: functionData(part, faults) } : {}),
    };
  });
  return { data: { parts }, fault: firstFault(faults) };
}

function sectionData(section: DumpedSection, { details, contents }: ObjdumpViews): object {
  const { id, name, customName, offset, bytes, count, content, entries } = section;
  return {
    id,
    name,
    ...(customName === undefined ? {} : { customName }),
    offset,
    bytes,
    ...(count === undefined ? {} : { count }),
    ...(details ? { entries: [...entries()].map((line) => line.replace(/^ +- /, "")) } : {}),
    ...(contents ? { contents: hexText(content) } : {}),
  };
}

function functionData({ functions }: DumpedPart, faults: WaftError[]): object[] {
  return Array.from(functions(), (func) => {
    const { index, name, offset, bytes, code } = func;
    if (code.fault !== undefined) faults.push(code.fault);
    return {
      index,
      ...(name === undefined ? {} : { name }),
      offset,
      bytes: bytes.length,
      locals: code.locals,
      instructions: Array.from(code.lines, (line, k) => {
        const end = code.offsets[k + 1] ?? code.end;
        const own = bytes.subarray(code.offsets[k] - offset, end - offset);
        return { offset: code.offsets[k], bytes: hexText(own), text: line.trim() };
      }),
    };
  });
}

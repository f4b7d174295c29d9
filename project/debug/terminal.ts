/**
 * The debugger in a terminal: a prompt. In: a launched program and two streams. Out: the answers to commands; at the
 * end the program's exit status.
 *
 * One command at a time: while the program runs, only the interrupt key has an effect: it stops the program. Names and
 * text of the program are escaped.
 */
import { createInterface, type Interface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { safe } from "../base/terminal.ts";
import type { Launched, Outcome } from "./adapter.ts";
import type { BreakpointRequest, Debugger } from "./debugger.ts";
import { type PartFrame, Parts, type PlacedInParts } from "./parts.ts";
import type { Program } from "./program.ts";
import type { Step, StepBack, Stop } from "./session.ts";
import { candidatePaths, firstText, matchingSource } from "./source_paths.ts";
import type { Place, Source } from "./sources.ts";
import type { Variable } from "./variable.ts";
import { inlineText, scopesOf } from "./variables.ts";

const PROMPT = "(waft) ";
/** Lines around the current one that `list` shows, and bytes per line of `x`. */
const CONTEXT_LINES = 5;
const ROW_BYTES = 16;
/** The most parts of an aggregate that `print` shows. */
const MAX_PARTS = 100;

interface CommandRow {
  readonly names: readonly string[];
  readonly args: string;
  readonly about: string;
  /** Returns the text of the answer; a promise if it resumes the program. */
  readonly run: (terminal: Terminal, words: string) => string | Promise<string>;
}

/** The commands. The words are gdb's. */
const COMMANDS: readonly CommandRow[] = [
  {
    names: ["break", "b"],
    args: "FILE:LINE | FUNCTION | *OFFSET [if EXPRESSION]",
    about: "stop there",
    run: (terminal, words) => terminal.addBreakpoint(words),
  },
  {
    names: ["tbreak"],
    args: "FILE:LINE | FUNCTION | *OFFSET [if EXPRESSION]",
    about: "stop there once",
    run: (terminal, words) => terminal.addBreakpoint(words, true),
  },
  { names: ["watch"], args: "EXPRESSION", about: "stop when its value changes", run: (t, words) => t.watch(words) },
  { names: ["unwatch"], args: "", about: "end all watches", run: (t) => t.unwatch() },
  {
    names: ["delete", "d"],
    args: "[N]",
    about: "remove a breakpoint, or all",
    run: (t, words) => t.removeBreakpoints(words),
  },
  { names: ["run", "r"], args: "", about: "start the program", run: (t) => t.start() },
  { names: ["continue", "c"], args: "", about: "go on", run: (t) => t.continue() },
  { names: ["next", "n"], args: "", about: "to the next line, over calls", run: (t) => t.step("over", false) },
  { names: ["step", "s"], args: "", about: "to the next line, into calls", run: (t) => t.step("into", false) },
  { names: ["finish"], args: "", about: "to the caller", run: (t) => t.step("out", false) },
  { names: ["nexti", "ni"], args: "", about: "to the next instruction, over calls", run: (t) => t.step("over", true) },
  { names: ["stepi", "si"], args: "", about: "to the next instruction, into calls", run: (t) => t.step("into", true) },
  {
    names: ["reverse-continue", "rc"],
    args: "",
    about: "back to the breakpoint before",
    run: (t) => t.back("breakpoint"),
  },
  { names: ["reverse-next", "rn"], args: "", about: "back to the line before", run: (t) => t.back("line") },
  { names: ["reverse-stepi", "rsi"], args: "", about: "back by an instruction", run: (t) => t.back("instruction") },
  { names: ["backtrace", "bt"], args: "", about: "the stack", run: (t) => t.backtrace() },
  { names: ["frame", "f"], args: "N", about: "choose a frame", run: (t, words) => t.chooseFrame(words) },
  { names: ["up"], args: "[N]", about: "to the caller's frame", run: (t, words) => t.moveFrame(words, 1) },
  { names: ["down"], args: "[N]", about: "to the called frame", run: (t, words) => t.moveFrame(words, -1) },
  {
    names: ["info", "i"],
    args: "breakpoints | watches | frame | locals | globals",
    about: "what there is",
    run: (t, words) => t.info(words),
  },
  { names: ["locals"], args: "", about: "variables of the frame", run: (t) => t.scope("Locals") },
  { names: ["globals"], args: "", about: "globals of the module", run: (t) => t.scope("Globals") },
  { names: ["print", "p"], args: "EXPRESSION", about: "a value", run: (t, words) => t.print(words) },
  { names: ["set"], args: "NAME = VALUE", about: "change a variable", run: (t, words) => t.set(words) },
  {
    names: ["x"],
    args: "[/COUNT FORMAT SIZE] ADDRESS [BYTES]",
    about: "memory; as x/4xw 16 by numbers: x d u c, in b h w g",
    run: (t, words) => t.memory(words),
  },
  { names: ["list", "l"], args: "", about: "the source around the current line", run: (t) => t.list() },
  { names: ["help", "h"], args: "", about: "this list", run: () => help() },
  { names: ["quit", "q"], args: "", about: "end the program and the debugger", run: (t) => t.quit() },
];

function help(): string {
  const rows = COMMANDS.map(({ names, args, about }) => ({ usage: `${names.join(", ")} ${args}`.trim(), about }));
  const width = Math.max(...rows.map(({ usage }) => usage.length));
  return rows.map(({ usage, about }) => `  ${usage.padEnd(width)}  ${about}`).join("\n");
}

/** Runs the prompt; resolves to the exit status. */
export function runTerminal(launched: Launched, input: Readable, output: Writable): Promise<number> {
  return new Terminal(launched, input, output).run();
}

class Terminal {
  readonly #launched: Launched;
  readonly #parts: Parts;
  readonly #lines: Interface;
  readonly #output: Writable;
  /** Whether the input is a terminal; otherwise the commands are repeated in the output. */
  readonly #isTerminal: boolean;
  #breakpoints: WantedBreakpoint[] = [];
  #frame = 0;
  #started = false;
  #outcome: Outcome | undefined;
  #quit = false;
  #atEnd = false;
  /** Settles the command that has resumed the program. */
  #settle: ((answer: string) => void) | undefined;

  constructor(launched: Launched, input: Readable, output: Writable) {
    this.#launched = launched;
    this.#output = output;
    this.#parts = new Parts(launched.programs, {
      stopped: (stop) => this.#stopped(stop),
      logged: (text) => this.#write(safe(text)),
    });
    this.#isTerminal = (input as { isTTY?: boolean }).isTTY === true;
    this.#lines = createInterface({ input, output, terminal: this.#isTerminal });
    this.#lines.on("SIGINT", () => this.#interrupt());
  }

  /** The part in which the program has stopped. */
  get #debugger(): Debugger {
    return this.#parts.current;
  }

  async run(): Promise<number> {
    this.#write(`${safe(this.#debugger.program.name)}: "run" starts it, "help" lists the commands.`);
    for (const note of this.#launched.notes ?? []) this.#write(safe(note));
    this.#lines.setPrompt(PROMPT);
    this.#lines.once("close", () => this.#atEnd = true);
    this.#prompt();
    let last = "";
    for await (const line of this.#lines) {
      if (!this.#isTerminal) this.#write(safe(line));
      const words = line.trim() === "" ? last : line.trim();
      last = words;
      const answer = await this.#answer(words);
      if (answer !== "") this.#write(answer);
      if (this.#quit) break;
      this.#prompt();
    }
    this.#lines.close();
    if (!this.#quit) this.#write("");
    if (this.#started && this.#outcome === undefined) this.#launched.terminate();
    return this.#outcome?.status ?? 0;
  }

  /** Lines that came before the end of the input are still read after it. */
  #prompt(): void {
    if (this.#atEnd) this.#output.write(PROMPT);
    else this.#lines.prompt();
  }

  async #answer(words: string): Promise<string> {
    if (words === "") return "";
    // A format follows its command without a space: x/4x.
    const [name = "", rest = ""] = /^([^\s/]+)\s*(.*)$/.exec(words)?.slice(1) ?? [];
    const row = COMMANDS.find(({ names }) => names.includes(name));
    if (row === undefined) return `There is no command "${safe(name)}"; "help" lists them.`;
    try {
      return await row.run(this, rest);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      return safe(error.message);
    }
  }

  #write(text: string): void {
    this.#output.write(`${text}\n`);
  }

  #interrupt(): void {
    if (this.#settle !== undefined) this.#parts.pause();
    else this.#lines.close();
  }

  #stopped({ reason, text }: Stop): void {
    this.#frame = 0;
    this.#dropTemporary();
    const why = reason === "exception" ? `Trap: ${safe(text ?? "")}\n` : text === undefined ? "" : `${safe(text)}\n`;
    this.#answerWith(`${why}${this.#describe(this.#frames()[0], 0)}\n${this.#sourceLine()}`);
  }

  #answerWith(answer: string): void {
    const settle = this.#settle;
    this.#settle = undefined;
    settle?.(answer);
  }

  #resumed(resume: () => void): Promise<string> {
    return new Promise((settle) => {
      this.#settle = settle;
      resume();
    });
  }

  /** Starts the program, up to its first stop or its end. */
  start(): Promise<string> {
    if (this.#started) throw new Error("The program has started already.");
    this.#started = true;
    const { run, outcome } = this.#launched;
    return this.#resumed(() => {
      run((session) => this.#parts.attach(session)).then(
        (result) => this.#ended(outcome({ result })),
        (error) => this.#ended(outcome({ error })),
      );
    });
  }

  #ended(outcome: Outcome): void {
    this.#outcome = outcome;
    const { status, output, message } = outcome;
    const lines = [output.trimEnd(), message].filter((text) => text !== "");
    this.#answerWith([...lines, `The program ended with status ${status}.`].join("\n"));
  }

  continue(): Promise<string> {
    this.#requireStopped();
    return this.#resumed(() => this.#parts.continue());
  }

  step(step: Step, byInstruction: boolean): string | Promise<string> {
    this.#requireStopped();
    return this.#resumed(() => this.#parts.step(step, byInstruction));
  }

  back(step: StepBack): Promise<string> {
    this.#requireStopped();
    this.#debugger.session.requireBack();
    return this.#resumed(() => this.#debugger.session.back(step));
  }

  #requireStopped(): void {
    if (!this.#started) throw new Error('The program has not started: "run" starts it.');
    if (this.#outcome !== undefined || !this.#debugger.session.isStopped) throw new Error("The program has ended.");
  }

  /** The stack across all parts. */
  #frames(): PartFrame[] {
    this.#requireStopped();
    return this.#parts.frames();
  }

  /** The chosen frame, and the part that it is in. */
  #current(): PartFrame {
    const frame = this.#frames()[this.#frame];
    if (frame === undefined) throw new Error("There is no such frame.");
    return frame;
  }

  #describe({ part, frame }: PartFrame, index: number): string {
    const { program } = part;
    const { source, line, column } = part.placeOf(frame);
    // A text that is made of a module has the module's name.
    const isNamed = this.#parts.all.length === 1 || source.text !== undefined || source.name === program.name;
    const module = isNamed ? "" : ` in ${safe(program.name)}`;
    return `#${index} ${safe(program.functionName(frame.func.index))} at ${
      safe(source.name)
    }:${line}:${column}${module}`;
  }

  backtrace(): string {
    return this.#frames().map((frame, k) => `${k === this.#frame ? "*" : " "} ${this.#describe(frame, k)}`).join("\n");
  }

  chooseFrame(words: string): string {
    const chosen = Number(words);
    const frame = this.#frames()[chosen];
    if (words.trim() === "" || frame === undefined) throw new Error("There is no such frame.");
    this.#frame = chosen;
    return `${this.#describe(frame, chosen)}\n${this.#sourceLine()}`;
  }

  /** `up` and `down`: by a number of frames, up to the outermost or innermost. */
  moveFrame(words: string, direction: 1 | -1): string {
    const count = words === "" ? 1 : Number(words);
    const last = this.#frames().length - 1;
    if (!Number.isInteger(count) || count < 1) throw new Error("It takes a number of frames.");
    const chosen = Math.min(last, Math.max(0, this.#frame + direction * count));
    if (chosen === this.#frame) throw new Error(`This is the ${direction > 0 ? "outermost" : "innermost"} frame.`);
    return this.chooseFrame(String(chosen));
  }

  info(words: string): string {
    const list = (rows: readonly string[]) => rows.length === 0 ? "  (none)" : rows.join("\n");
    switch (words) {
      case "breakpoints":
      case "b":
        return list(
          this.#breakpoints.map(({ text, isTemporary }, k) =>
            `  ${k + 1}  ${safe(text)}${isTemporary ? " (once)" : ""}`
          ),
        );
      case "watches":
        return list(this.#parts.watched.map((text) => `  ${safe(text)}`));
      case "frame":
        return `${this.#describe(this.#current(), this.#frame)}\n${this.#sourceLine()}`;
      case "locals":
        return this.scope("Locals");
      case "globals":
        return this.scope("Globals");
    }
    throw new Error("info takes breakpoints, watches, frame, locals or globals.");
  }

  watch(words: string): string {
    if (words === "") throw new Error("watch takes an expression.");
    if (this.#parts.watched.includes(words)) throw new Error(`${words} is watched already.`);
    const { part, frame } = this.#current();
    part.watch(frame, words);
    return `Watching ${safe(words)}: ${safe(inlineText(part.evaluate(frame, words)))}`;
  }

  unwatch(): string {
    if (this.#parts.watched.length === 0) throw new Error("There is no watch.");
    this.#parts.unwatch();
    return "";
  }

  /** Removes the temporary breakpoints at which the program has stopped. */
  #dropTemporary(): void {
    const { program, session } = this.#debugger;
    const location = session.frames()[0]?.location;
    const hit = this.#breakpoints.filter(({ isTemporary, locations }) =>
      isTemporary && location !== undefined && locations?.get(program)?.includes(location)
    );
    if (hit.length === 0) return;
    this.#breakpoints = this.#breakpoints.filter((each) => !hit.includes(each));
    for (const { place } of hit) this.#place(place);
  }

  #textOf({ source }: Place): string[] | undefined {
    if (source.text !== undefined) return source.text.split("\n");
    return (firstText(candidatePaths(source.name, this.#launched.path)) ?? source.content)?.split("\n");
  }

  #sourceLine(around = 0): string {
    const { part, frame } = this.#current();
    const place = part.placeOf(frame);
    const text = this.#textOf(place);
    if (text === undefined) return `  (the source ${safe(place.source.name)} is not on this machine)`;
    const from = Math.max(1, place.line - around);
    const to = Math.min(text.length, place.line + around);
    const lines: string[] = [];
    for (let line = from; line <= to; line++) {
      lines.push(
        `${line === place.line ? ">" : " "} ${String(line).padStart(5)}  ${safe((text[line - 1] ?? "").trimEnd())}`,
      );
    }
    return lines.join("\n");
  }

  list(): string {
    return this.#sourceLine(CONTEXT_LINES);
  }

  scope(name: string): string {
    const { part, frame } = this.#current();
    const scope = scopesOf(part.session, frame).find((each) => each.name === name);
    const rows = scope?.variables() ?? [];
    return rows.length === 0 ? "  (none)" : rows.map((variable) => this.#line(variable)).join("\n");
  }

  #line(variable: Variable): string {
    return `  ${safe(variable.name)}: ${safe(variable.type)} = ${safe(inlineText(variable))}`;
  }

  /** The value of an expression in the chosen frame. */
  #evaluate(expression: string): Variable {
    const { part, frame } = this.#current();
    return part.evaluate(frame, expression);
  }

  print(expression: string): string {
    if (expression === "") throw new Error("print takes an expression.");
    const found = this.#evaluate(expression);
    const parts = found.parts?.() ?? [];
    const more = parts.length > MAX_PARTS ? `\n  … ${parts.length - MAX_PARTS} more` : "";
    return [safe(found.text), ...parts.slice(0, MAX_PARTS).map((part) => this.#line(part))].join("\n") + more;
  }

  set(words: string): string {
    const [, name, value] = /^(.*?)\s*=\s*(.*)$/.exec(words) ?? [];
    if (name === undefined || value === undefined) throw new Error("set takes NAME = VALUE.");
    const variable = this.#evaluate(name);
    if (variable.set === undefined) throw new Error(`${name} cannot be changed.`);
    variable.set(value);
    return "";
  }

  memory(words: string): string {
    const [, format, rest = words] = /^\/(\S+)\s*(.*)$/.exec(words) ?? [];
    const [where = "", length] = rest.split(/\s+/);
    const found = this.#evaluate(where);
    const at = found.address ?? Number(found.value ?? NaN);
    const bytes = this.#current().part.session.memories[0]?.bytes;
    if (bytes === undefined) throw new Error("The module has no memory.");
    if (!(at >= 0 && at < bytes.length)) throw new Error(`The memory has ${bytes.length} bytes.`);
    if (format !== undefined) return numberRows(bytes, at, format);
    const end = Math.min(bytes.length, at + Math.min(4096, Number(length ?? 4 * ROW_BYTES) || 0));
    const rows: string[] = [];
    for (let row = at; row < end; row += ROW_BYTES) {
      rows.push(memoryRow(bytes.subarray(row, Math.min(end, row + ROW_BYTES)), row));
    }
    return rows.join("\n");
  }

  addBreakpoint(words: string, isTemporary = false): string {
    const [, place = "", condition] = /^(.*?)(?:\s+if\s+(.*))?$/.exec(words) ?? [];
    const target = this.#target(place);
    const request = condition === undefined ? {} : { condition };
    const added: WantedBreakpoint = { place: target, request, text: words, isTemporary, locations: undefined };
    this.#breakpoints.push(added);
    const placed = this.#place(target).at(-1);
    added.locations = placed?.byProgram;
    if (placed?.place === undefined) {
      this.#breakpoints.pop();
      this.#place(target);
      throw new Error(`There is no code at ${place}.`);
    }
    const { source, line } = placed.place;
    return `Breakpoint ${this.#breakpoints.length} at ${safe(source.name)}:${line}`;
  }

  removeBreakpoints(words: string): string {
    const gone = words === "" ? this.#breakpoints.splice(0) : this.#breakpoints.splice(Number(words) - 1, 1);
    if (gone.length === 0) throw new Error("There is no such breakpoint.");
    for (const { place } of gone) this.#place(place);
    return "";
  }

  #target(words: string): Target {
    const [, file, line] = /^(.*):(\d+)$/.exec(words) ?? [];
    if (file !== undefined) {
      const source = this.#sourceNamed(file);
      if (source === undefined) throw new Error(`No source is called ${file}.`);
      return { kind: "line", source, line: Number(line) };
    }
    if (words.startsWith("*")) return { kind: "offset", part: this.#chosenPart(), offset: Number(words.slice(1)) };
    if (words === "") throw new Error("break takes FILE:LINE, a function, or *OFFSET.");
    return { kind: "function", name: words };
  }

  /** The part of the chosen frame; the main part before the program has started. */
  #chosenPart(): Debugger {
    const isStopped = this.#started && this.#outcome === undefined && this.#debugger.session.isStopped;
    return (isStopped ? this.#frames()[this.#frame]?.part : undefined) ?? this.#debugger;
  }

  /** The source of a part that a name means, those of the part of the chosen frame first. */
  #sourceNamed(name: string): Source | undefined {
    const programs = new Set([this.#chosenPart(), ...this.#parts.all].map(({ program }) => program));
    for (const { sources } of programs) {
      const found = matchingSource(name, [...sources.files, sources.disassembly]);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Passes all breakpoints of a kind, or of a source, to the debugger. */
  #place(target: Target): readonly PlacedInParts[] {
    const alike = this.#breakpoints.filter(({ place }) => place.kind === target.kind);
    switch (target.kind) {
      case "line": {
        const lines = alike.flatMap(({ place, request }) =>
          place.kind === "line" && place.source === target.source ? [{ ...request, line: place.line }] : []
        );
        return this.#parts.breakInSource(target.source, lines);
      }
      case "function":
        return this.#parts.breakAtFunctions(
          alike.flatMap(({ place, request }) => place.kind === "function" ? [{ ...request, name: place.name }] : []),
        );
      case "offset":
        return this.#parts.breakAtOffsets(
          target.part,
          alike.flatMap(({ place, request }) =>
            place.kind === "offset" && place.part === target.part ? [{ ...request, offset: place.offset }] : []
          ),
        );
    }
  }

  quit(): string {
    this.#quit = true;
    return "";
  }
}

/** A breakpoint as it was asked for. */
interface WantedBreakpoint {
  readonly place: Target;
  readonly request: BreakpointRequest;
  readonly text: string;
  /** True for one that is removed at its first stop. */
  readonly isTemporary: boolean;
  /** Its locations in the programs. */
  locations: ReadonlyMap<Program, readonly number[]> | undefined;
}

/** The requested position of a breakpoint. */
type Target =
  | { readonly kind: "line"; readonly source: Source; readonly line: number }
  | { readonly kind: "function"; readonly name: string }
  | { readonly kind: "offset"; readonly part: Debugger; readonly offset: number };

/** The bytes of the units of gdb's `x`. */
const UNITS: Readonly<Record<string, number>> = { b: 1, h: 2, w: 4, g: 8 };
const MAX_NUMBERS = 1024;

/** Memory as numbers, in gdb's formats: `4xw`, `8d`, `16c`. Throws an Error for others. */
function numberRows(bytes: Uint8Array, at: number, format: string): string {
  const [, digits = "", letter = "x", unit = letter === "c" ? "b" : "w"] = /^(\d*)([xduc]?)([bhwg]?)$/.exec(format)
    ?.map((part, k) => k > 1 && part === "" ? undefined : part) ?? [];
  const count = digits === "" ? 1 : Number(digits);
  if (!/^\d*[xduc]?[bhwg]?$/.test(format) || count < 1 || count > MAX_NUMBERS) {
    throw new Error(
      `x takes /COUNT FORMAT SIZE with a count up to ${MAX_NUMBERS}, x d u c, and b h w g; not /${format}.`,
    );
  }
  const size = UNITS[unit];
  const shown = Math.min(count, Math.floor((bytes.length - at) / size));
  const numbers = Array.from({ length: shown }, (_, k) => numberText(bytes, at + k * size, size, letter));
  const perRow = ROW_BYTES / size;
  const rows: string[] = [];
  for (let k = 0; k < numbers.length; k += perRow) {
    const address = (at + k * size).toString(16).padStart(8, "0");
    rows.push(`  ${address}  ${numbers.slice(k, k + perRow).join("  ")}`);
  }
  return rows.length === 0 ? `  (the memory ends at ${bytes.length})` : rows.join("\n");
}

function numberText(bytes: Uint8Array, at: number, size: number, letter: string): string {
  const bits = bytes.subarray(at, at + size).reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
  if (letter === "x") return `0x${bits.toString(16).padStart(2 * size, "0")}`;
  if (letter === "u") return String(bits);
  const signed = BigInt.asIntN(8 * size, bits);
  if (letter === "d") return String(signed);
  return bits >= 0x20n && bits < 0x7fn ? `${signed} '${String.fromCharCode(Number(bits))}'` : String(signed);
}

/** `00000010  61 62 …  ab…` */
function memoryRow(bytes: Uint8Array, address: number): string {
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
  const text = [...bytes].map((byte) => byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".").join("");
  return `  ${address.toString(16).padStart(8, "0")}  ${hex.padEnd(ROW_BYTES * 3 - 1)}  ${text}`;
}

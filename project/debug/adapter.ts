/**
 * The debugger for editors: the Debug Adapter Protocol on top of {@linkcode Debugger}. In: requests, and functions that
 * prepare the program that a `launch` request names, or find the one that an `attach` request names. Out: the
 * protocol's events and bodies of responses.
 *
 * References to variables, frames and threads are those of the protocol: valid while the program is stopped.
 */
import { existsSync } from "node:fs";
import { basename, dirname, isAbsolute, resolve } from "node:path";
import type { Readable, Writable } from "node:stream";
import type { BreakpointRequest, Debugger } from "./debugger.ts";
import type { LaunchRequest } from "./launch_arguments.ts";
import { type PartFrame, Parts, type PlacedInParts } from "./parts.ts";
import type { Program } from "./program.ts";
import { type Arguments, Connection, isRecord } from "./protocol.ts";
import type { Session, StepBack, Stop } from "./session.ts";
import { isRemote, matchingSource } from "./source_paths.ts";
import type { Place, Source } from "./sources.ts";
import type { Variable } from "./variable.ts";
import { scopesOf } from "./variables.ts";

/** A program that is ready to run. */
export interface Launched {
  /** The programs of its parts: a module's, or those of the core modules of a component, the main one first. */
  readonly programs: readonly Program[];
  /** Whether it can go back. */
  readonly goesBack: boolean;
  /** The path of its file. */
  readonly path: string;
  /** Sentences about parts that do not stop. */
  readonly notes?: readonly string[];
  /** Runs it to its end; resolves to its result. `attach` takes the session of each part before that runs. */
  readonly run: (attach: (session: Session) => void) => Promise<unknown>;
  /** Ends it: the run rejects with an AbortError. */
  readonly terminate: () => void;
  /** The exit status and the lines to print at the end, or the error that the run ended with. */
  readonly outcome: (end: { readonly result: unknown } | { readonly error: unknown }) => Outcome;
}

/** The end of a program. */
export interface Outcome {
  readonly status: number;
  readonly output: string;
  readonly message: string;
}

/** Prepares the program that the arguments of a `launch` request name; `write` takes its output. */
export type Launch = (
  args: Arguments,
  write: (category: "stdout" | "stderr", text: string) => void,
) => Launched | Promise<Launched>;

/** The only thread. */
const THREAD = 1;
/** The maximum number of bytes of one answer: a memory of 4 GiB has no text in base 64. */
const MAX_READ = 1 << 24;
/**
 * The number of the main part's disassembly as a source without a file; those whose text its source map has come after
 * it, and then those of the next part.
 */
const DISASSEMBLY = 1;
const CAPABILITIES = [
  "supportsConfigurationDoneRequest",
  "supportsFunctionBreakpoints",
  "supportsConditionalBreakpoints",
  "supportsHitConditionalBreakpoints",
  "supportsLogPoints",
  "supportsInstructionBreakpoints",
  "supportsSteppingGranularity",
  "supportsSetVariable",
  "supportsReadMemoryRequest",
  "supportsWriteMemoryRequest",
  "supportsStepBack",
  "supportsExceptionInfoRequest",
  "supportsLoadedSourcesRequest",
  "supportsModulesRequest",
  "supportsBreakpointLocationsRequest",
  "supportsTerminateRequest",
  "supportsEvaluateForHovers",
] as const;

/** A program that runs already. */
export interface Attached {
  /** The programs of its parts, the main one first. */
  readonly programs: readonly Program[];
  /** The sessions of the last call; none before the first one of a component. */
  readonly sessions: () => readonly Session[];
  /** Calls `take` with the sessions of another instance, when a call of it begins. */
  readonly follow: (take: (sessions: readonly Session[]) => void) => void;
  /** The path of the module's file, or its name. */
  readonly path: string;
  /** Called once the editor has set its breakpoints. */
  readonly configured: () => void;
  /** Called once the editor is gone. */
  readonly detached: () => void;
}

/** Finds the program that the arguments of an `attach` request name. Throws an Error if there is none. */
export type Attach = (args: Arguments) => Attached;

/** The programs that an editor can debug. */
export interface Programs {
  readonly launch?: Launch;
  readonly attach?: Attach;
}

/** Serves one editor on two streams; resolves to the exit status once it is gone. */
export function serveAdapter(input: Readable, output: Writable, programs: Programs): Promise<number> {
  return new Promise((done) => new Adapter(input, output, programs, done));
}

/** Variables of a part. */
interface VariableList {
  readonly part: Debugger;
  readonly variables: () => readonly Variable[];
}

/** The program that the editor debugs. */
interface Target {
  readonly parts: Parts;
  readonly path: string;
  /** Lets the program run; it stops at its first or next instruction if `stops`. */
  readonly start: (stops: boolean) => void;
  /** Ends the session: the program that was launched, or the connection with one that runs on. */
  readonly end: () => void;
}

class Adapter {
  readonly #connection: Connection;
  readonly #prepares: Programs;
  readonly #done: (status: number) => void;
  #target: Target | undefined;
  #stopOnEntry = false;
  #stop: Stop | undefined;
  #status = 0;
  #started = false;
  #isConfigured = false;
  /** Lists of variables by reference − 1, for the current stop. */
  #variables: VariableList[] = [];
  #frames: PartFrame[] = [];
  /** Paths of source files as the editor names them. */
  readonly #paths = new Map<Source, string>();

  constructor(input: Readable, output: Writable, programs: Programs, done: (status: number) => void) {
    this.#prepares = programs;
    this.#done = done;
    this.#connection = new Connection(
      input,
      output,
      (command, args) => this.#request(command, args),
      () => this.#end(),
    );
  }

  /** The requests that are served. */
  readonly #requests: Readonly<Record<string, (args: Arguments) => object | void | Promise<object | void>>> = {
    initialize: () => Object.fromEntries(CAPABILITIES.map((name) => [name, true])),
    launch: (args) => this.#launch(args),
    attach: (args) => this.#attach(args),
    setBreakpoints: (args) => this.#setBreakpoints(args),
    setFunctionBreakpoints: (args) => this.#setFunctionBreakpoints(args),
    setInstructionBreakpoints: (args) => this.#setInstructionBreakpoints(args),
    setExceptionBreakpoints: () => ({ breakpoints: [] }),
    breakpointLocations: (args) => this.#breakpointLocations(args),
    configurationDone: () => this.#start(),
    threads: () => ({ threads: [{ id: THREAD, name: "main" }] }),
    stackTrace: (args) => this.#stackTrace(args),
    scopes: (args) => this.#scopes(args),
    variables: (args) => this.#listVariables(args),
    setVariable: (args) => this.#setVariable(args),
    evaluate: (args) => this.#evaluate(args),
    source: (args) => this.#source(args),
    loadedSources: () => ({
      sources: this.#programs.flatMap((program) =>
        program.sources.files.map((source) => this.#sourceOf(source, program))
      ),
    }),
    modules: () => ({ modules: this.#programs.map(({ name }) => ({ id: name, name })) }),
    readMemory: (args) => this.#readMemory(args),
    writeMemory: (args) => this.#writeMemory(args),
    exceptionInfo: () => this.#exceptionInfo(),
    continue: () => {
      this.#resume(() => this.#parts.continue());
      return { allThreadsContinued: true };
    },
    next: (args) => this.#step("over", args),
    stepIn: (args) => this.#step("into", args),
    stepOut: (args) => this.#step("out", args),
    stepBack: ({ granularity }) => this.#back(granularity === "instruction" ? "instruction" : "line"),
    reverseContinue: () => this.#back("breakpoint"),
    pause: () => this.#parts.pause(),
    terminate: () => this.#started ? this.#target?.end() : this.#connection.event("terminated"),
    disconnect: () => this.#end(),
  };

  async #request(command: string, args: Arguments): Promise<object | undefined> {
    const serve = Object.hasOwn(this.#requests, command) ? this.#requests[command] : undefined;
    if (serve === undefined) throw new Error(`the request ${command} is not supported`);
    return await serve(args) ?? undefined;
  }

  get #parts(): Parts {
    if (this.#target === undefined) throw new Error("no program is launched");
    return this.#target.parts;
  }

  /** The part in which the program has stopped. */
  get #debugger(): Debugger {
    return this.#parts.current;
  }

  /** The programs of the parts; instances of one core module share theirs. */
  get #programs(): readonly Program[] {
    return [...new Set(this.#parts.all.map(({ program }) => program))];
  }

  async #launch(args: LaunchRequest): Promise<void> {
    if (this.#target !== undefined) throw new Error("a program is launched already");
    const { launch } = this.#prepares;
    if (launch === undefined) throw new Error("this program runs already: use attach");
    const launched = await launch(args, (category, output) => this.#connection.event("output", { category, output }));
    const { programs, goesBack, path, run, terminate, outcome } = launched;
    const parts = new Parts(programs, this.#observer());
    const start = (stops: boolean) => {
      run((session) => parts.attach(session, stops ? "entry" : undefined)).then(
        (result) => this.#ended(outcome({ result })),
        (error) => this.#ended(outcome({ error })),
      );
    };
    for (const note of launched.notes ?? []) {
      this.#connection.event("output", { category: "console", output: `${note}\n` });
    }
    if (!goesBack) this.#cannotGoBack();
    this.#prepared(args, { parts, path, start, end: terminate });
  }

  #attach(args: Arguments): void {
    if (this.#target !== undefined) throw new Error("a program is debugged already");
    const { attach } = this.#prepares;
    if (attach === undefined) throw new Error("there is no program to attach to: use launch");
    const { programs, sessions, follow, path, configured, detached } = attach(args);
    const parts = new Parts(programs, this.#observer());
    let isDetached = false;
    const end = () => {
      if (isDetached) return;
      isDetached = true;
      parts.detach();
      detached();
      this.#connection.event("terminated");
    };
    const start = (stops: boolean) => {
      const atNext = stops ? "pause" : undefined;
      const running = sessions();
      for (const session of running) parts.attach(session, atNext);
      let isFirst = running.length === 0;
      follow((next) => {
        parts.detach(); // the instance may be called again without an editor
        for (const session of next) parts.attach(session, isFirst ? atNext : undefined);
        isFirst = false;
      });
      configured();
    };
    this.#cannotGoBack();
    this.#started = true; // an editor that leaves before it is configured detaches, too
    this.#prepared(args, { parts, path, start, end });
  }

  #cannotGoBack(): void {
    this.#connection.event("capabilities", { capabilities: { supportsStepBack: false } });
  }

  /** Tells the editor that it may set breakpoints. */
  #prepared({ stopOnEntry }: Arguments, target: Target): void {
    this.#stopOnEntry = stopOnEntry === true;
    this.#target = target;
    this.#connection.event("initialized");
  }

  #observer(): ConstructorParameters<typeof Parts>[1] {
    return {
      stopped: (stop: Stop) => this.#stopped(stop),
      logged: (text: string, place: Place, program: Program) =>
        this.#connection.event("output", {
          category: "console",
          output: `${text}\n`,
          source: this.#sourceOf(place.source, program),
          line: place.line,
        }),
    };
  }

  #start(): void {
    const { start } = this.#target ?? this.#notLaunched();
    if (this.#isConfigured) throw new Error("the program has started already");
    this.#isConfigured = this.#started = true;
    start(this.#stopOnEntry);
  }

  #notLaunched(): never {
    throw new Error("no program is launched");
  }

  #ended({ status, output, message }: Outcome): void {
    if (output !== "") this.#connection.event("output", { category: "stdout", output });
    if (message !== "") this.#connection.event("output", { category: "stderr", output: `waft: ${message}\n` });
    this.#status = status;
    this.#connection.event("exited", { exitCode: status });
    this.#connection.event("terminated");
  }

  #end(): void {
    if (this.#started) this.#target?.end();
    // The response to the request that ends the session goes out first.
    setTimeout(() => this.#done(this.#status), 0);
  }

  #stopped(stop: Stop): void {
    this.#stop = stop;
    const { reason, text } = stop;
    this.#connection.event("stopped", {
      reason,
      threadId: THREAD,
      allThreadsStopped: true,
      ...(text === undefined ? {} : { text, description: text }),
    });
  }

  /** Forgets the references of the stop, and resumes the program once the request is answered. */
  #resume(go: (program: Debugger) => void): void {
    if (!this.#debugger.session.isStopped) throw new Error("the program is running");
    this.#variables = [];
    this.#frames = [];
    this.#stop = undefined;
    setTimeout(() => {
      // The editor may have left meanwhile, and the program has gone on.
      if (this.#debugger.isAttached) go(this.#debugger);
    }, 0);
  }

  #step(step: "into" | "over" | "out", { granularity }: Arguments): void {
    this.#resume(() => this.#parts.step(step, granularity === "instruction"));
  }

  #back(step: StepBack): void {
    this.#debugger.session.requireBack();
    this.#resume(({ session }) => session.back(step));
  }

  #setBreakpoints({ source, breakpoints }: Arguments): object {
    const wanted = records(breakpoints);
    const found = isRecord(source) ? this.#sourceNamed(source) : undefined;
    if (found === undefined) return { breakpoints: wanted.map(() => ({ verified: false, message: "no such source" })) };
    const placed = this.#parts.breakInSource(
      found,
      wanted.map((each) => ({ ...requestOf(each), line: wholeNumber(each.line, "line") })),
    );
    return { breakpoints: placed.map((each) => this.#breakpoint(each)) };
  }

  #setFunctionBreakpoints({ breakpoints }: Arguments): object {
    const placed = this.#parts.breakAtFunctions(
      records(breakpoints).map((each) => ({ ...requestOf(each), name: String(each.name) })),
    );
    return { breakpoints: placed.map((each) => this.#breakpoint(each)) };
  }

  #setInstructionBreakpoints({ breakpoints }: Arguments): object {
    const wanted = records(breakpoints).map((each) => ({
      ...this.#addressOf(each.instructionReference, each.offset),
      request: requestOf(each),
    }));
    const placed = new Map<object, PlacedInParts>();
    for (const part of this.#parts.all) {
      const here = wanted.filter((each) => each.part === part);
      const offsets = here.map(({ request, at }) => ({ ...request, offset: at }));
      for (const [k, breakpoint] of this.#parts.breakAtOffsets(part, offsets).entries()) {
        placed.set(here[k], breakpoint);
      }
    }
    return { breakpoints: wanted.map((each) => this.#breakpoint(placed.get(each)!)) };
  }

  #breakpoint({ place, program }: PlacedInParts): object {
    if (place === undefined) return { verified: false, message: "no code is there" };
    return { verified: true, line: place.line, column: place.column, source: this.#sourceOf(place.source, program) };
  }

  #breakpointLocations({ source, line, endLine }: Arguments): object {
    const found = isRecord(source) ? this.#sourceNamed(source) : undefined;
    const sources = found === undefined ? undefined : this.#programWith(found)?.sources;
    if (found === undefined || sources === undefined) return { breakpoints: [] };
    const last = endLine === undefined ? wholeNumber(line, "line") : wholeNumber(endLine, "endLine");
    const lines: { line: number }[] = [];
    for (let at = wholeNumber(line, "line"); at <= last;) {
      const next = sources.locationsOf(found, at);
      if (next === undefined || next.line > last) break;
      lines.push({ line: next.line });
      at = next.line + 1;
    }
    return { breakpoints: lines };
  }

  #stackTrace({ startFrame, levels }: Arguments): object {
    if (!this.#debugger.session.isStopped) throw new Error("the program is running");
    this.#frames = this.#parts.frames();
    const from = Number(startFrame ?? 0);
    const count = Number(levels ?? 0);
    const shown = this.#frames.slice(from, count > 0 ? from + count : undefined);
    return {
      totalFrames: this.#frames.length,
      stackFrames: shown.map(({ part, frame }, k) => {
        const place = part.placeOf(frame);
        const { program } = part;
        return {
          id: from + k + 1,
          name: program.functionName(frame.func.index),
          moduleId: program.name,
          source: this.#sourceOf(place.source, program),
          line: place.line,
          column: place.column,
          instructionPointerReference: this.#referenceTo(part, program.instrumented.offsets[frame.location]),
        };
      }),
    };
  }

  #frame(id: unknown): PartFrame {
    const frame = this.#frames[Number(id) - 1] ?? this.#parts.frames()[0];
    if (frame === undefined) throw new Error("the program has no frames now");
    return frame;
  }

  #scopes({ frameId }: Arguments): object {
    const { part, frame } = this.#frame(frameId);
    return {
      scopes: scopesOf(part.session, frame).map(({ name, expensive, variables }) => ({
        name,
        expensive,
        variablesReference: this.#variables.push({ part, variables }),
        ...(name === "Locals" ? { presentationHint: "locals" } : {}),
      })),
    };
  }

  /**
   * An address in a part, in its memory or its binary form: `0x10`, and with several parts `2/0x10`, since the editor
   * keeps it while other parts stop.
   */
  #referenceTo(part: Debugger, address: number): string {
    const { all } = this.#parts;
    const text = `0x${address.toString(16)}`;
    return all.length === 1 ? text : `${all.indexOf(part)}/${text}`;
  }

  /** The part and address of a reference; without a part, it is the one in which the program has stopped. */
  #addressOf(reference: unknown, offset: unknown): { readonly part: Debugger; readonly at: number } {
    const [, part, address] = /^(?:(\d+)\/)?(.*)$/.exec(String(reference)) ?? [];
    return {
      part: (part === undefined ? undefined : this.#parts.all[Number(part)]) ?? this.#debugger,
      at: Number(address) + Number(offset ?? 0),
    };
  }

  #variable({ name, type, text, parts, address }: Variable, part: Debugger): object {
    return {
      name,
      type,
      value: text,
      variablesReference: parts === undefined ? 0 : this.#variables.push({ part, variables: parts }),
      ...(address === undefined ? {} : { memoryReference: this.#referenceTo(part, address) }),
    };
  }

  #listed(reference: unknown): VariableList {
    const list = this.#variables[Number(reference) - 1];
    if (list === undefined) throw new Error("these variables belong to an earlier stop");
    return list;
  }

  #listVariables({ variablesReference, start, count }: Arguments): object {
    const from = Number(start ?? 0);
    const { part, variables } = this.#listed(variablesReference);
    const some = variables().slice(from, Number(count ?? 0) > 0 ? from + Number(count) : undefined);
    return { variables: some.map((variable) => this.#variable(variable, part)) };
  }

  #setVariable({ variablesReference, name, value }: Arguments): object {
    const find = () => this.#listed(variablesReference).variables().find((variable) => variable.name === name);
    const variable = find();
    if (variable?.set === undefined) throw new Error(`${String(name)} cannot be changed`);
    variable.set(String(value));
    const changed = find() ?? variable;
    return { value: changed.text, type: changed.type };
  }

  #evaluate({ expression, frameId }: Arguments): object {
    const { part, frame } = this.#frame(frameId);
    const found = part.evaluate(frame, String(expression));
    const { value, ...rest } = this.#variable(found, part) as { value: string };
    return { ...rest, result: value };
  }

  #source({ source, sourceReference }: Arguments): object {
    const reference = isRecord(source) ? source.sourceReference ?? sourceReference : sourceReference;
    const found = this.#sourceOfReference(reference);
    const content = found?.text ?? found?.content;
    if (content === undefined) throw new Error("no such source");
    return { content, mimeType: "text/plain" };
  }

  #memory(reference: unknown, offset: unknown): { bytes: Uint8Array; at: number } {
    const { part, at } = this.#addressOf(reference, offset);
    const bytes = part.session.memories[0]?.bytes;
    if (bytes === undefined) throw new Error("the module has no memory");
    return { bytes, at };
  }

  #readMemory({ memoryReference, offset, count }: Arguments): object {
    const wanted = wholeNumber(count, "count");
    if (wanted > MAX_READ) throw new Error(`at most ${MAX_READ} bytes can be read at once`);
    const { bytes, at } = this.#memory(memoryReference, offset);
    const from = Math.min(Math.max(at, 0), bytes.length);
    const read = bytes.slice(from, Math.max(from, Math.min(bytes.length, at + wanted)));
    return {
      address: `0x${from.toString(16)}`,
      data: Buffer.from(read).toString("base64"),
      unreadableBytes: wanted - read.length,
    };
  }

  #writeMemory({ memoryReference, offset, data }: Arguments): object {
    const { bytes, at } = this.#memory(memoryReference, offset);
    const written = Buffer.from(String(data), "base64");
    if (!(at >= 0 && at + written.length <= bytes.length)) throw new Error("that is beyond the end of the memory");
    bytes.set(written, at);
    return { bytesWritten: written.length };
  }

  #exceptionInfo(): object {
    const description = this.#stop?.text ?? "";
    return { exceptionId: "trap", description, breakMode: "always" };
  }

  #sourceNamed({ path, sourceReference }: Arguments): Source | undefined {
    const referenced = this.#sourceOfReference(sourceReference);
    if (referenced !== undefined || typeof path !== "string") return referenced;
    const found = matchingSource(path, this.#programs.flatMap(({ sources }) => sources.files));
    if (found !== undefined) this.#paths.set(found, path);
    return found;
  }

  #programWith(source: Source): Program | undefined {
    return this.#programs.find(({ sources }) => sources.has(source));
  }

  /** The number of a program's disassembly. */
  #referenceOf(program: Program): number {
    let reference = DISASSEMBLY;
    for (const each of this.#programs) {
      if (each === program) break;
      reference += 1 + each.sources.files.length;
    }
    return reference;
  }

  #sourceOf(source: Source, program: Program): object {
    if (source.text !== undefined) {
      return { name: basename(source.name), sourceReference: this.#referenceOf(program) };
    }
    const path = this.#paths.get(source) ?? this.#pathOf(source.name);
    if (source.content === undefined || (!isRemote(path) && existsSync(path))) {
      return { name: basename(source.name), path };
    }
    const index = program.sources.files.indexOf(source);
    return { name: basename(source.name), sourceReference: this.#referenceOf(program) + 1 + index };
  }

  /** The source that {@linkcode #sourceOf} has given this number. */
  #sourceOfReference(reference: unknown): Source | undefined {
    const wanted = Number(reference);
    for (const program of this.#programs) {
      const index = wanted - this.#referenceOf(program);
      if (index === 0) return program.sources.disassembly;
      if (index > 0 && index <= program.sources.files.length) return program.sources.files[index - 1];
    }
    return undefined;
  }

  /** The path of a source file: as the module names it, if there is such a file, or beside the module. */
  #pathOf(name: string): string {
    if (isRemote(name)) return name;
    const folder = dirname(this.#target?.path ?? "");
    const beside = resolve(folder, name);
    if (isAbsolute(name) && existsSync(name)) return name;
    const near = resolve(folder, basename(name));
    return existsSync(beside) || !existsSync(near) ? beside : near;
  }
}

function records(value: unknown): Arguments[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

function wholeNumber(value: unknown, name: string): number {
  if (typeof value !== "number" || !Number.isInteger(value)) throw new Error(`${name} must be a whole number`);
  return value;
}

function requestOf({ condition, hitCondition, logMessage }: Arguments): BreakpointRequest {
  const hits = typeof hitCondition === "string" ? Number(/\d+/.exec(hitCondition)?.[0] ?? NaN) : NaN;
  return {
    ...(typeof condition === "string" && condition !== "" ? { condition } : {}),
    ...(Number.isNaN(hits) ? {} : { hits }),
    ...(typeof logMessage === "string" && logMessage !== "" ? { log: logMessage } : {}),
  };
}

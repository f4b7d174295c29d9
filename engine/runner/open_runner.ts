/**
 * Starts the process of a runner. In: the options of a runner, and the program of its process. Out: a connection, and
 * the measures that confine the process. Invariant: options are checked before anything is started.
 */
import { inWords, isRecord, requireKnownNames, requireRecord, requireTexts, wholeNumber } from "../base/arguments.ts";
import { confinableCommand } from "../host/child_process.ts";
import type { Measure } from "../host/confinement.ts";
import type { EngineOptions } from "../api/engine.ts";
import { Connection } from "./connection.ts";
import { PROTOCOL_VERSION, ProtocolError } from "./protocol.ts";
import type { Ready, Setup } from "./service_types.ts";
import { jsonOf } from "./values.ts";

/** The options of the engine in a runner: those that name neither files nor functions of the program. */
export type RunnerEngineOptions = Omit<EngineOptions, "cache" | "explain" | "perfMap" | "parallel">;

/** The options of a runner. */
export interface RunnerOptions {
  /** The options of its engine. `interruptible` is true unless given. */
  engine?: RunnerEngineOptions;
  /**
   * The confinement by the operating system. `auto`: all that the system offers (docs/security.md). `required`: the
   * start fails unless the system filters system calls, which Linux does. `none`: only a process of its own. Default:
   * `auto`.
   */
  confinement?: "auto" | "required" | "none";
  /**
   * The maximum of memory in bytes that the process may get beyond what it has when it is ready: code, memories of
   * guests, and the JavaScript runtime's heap. At the limit, memories fail to grow, or the runner ends. Enforced on
   * Linux, if confined. Default: no limit.
   */
  maxBytes?: number;
  /** The maximum number of bytes of one message in either direction: arguments, results, parts. Default: 64 MiB. */
  maxMessageBytes?: number;
  /**
   * The command that starts a runner, `["waft", "runner"]` for example. Default: the executable that runs this program,
   * with the runner's file of this package.
   */
  command?: readonly string[];
  /** The milliseconds after which a runner that has not answered is ended at its start. Default: 60,000. */
  startDeadline?: number;
}

const OPTION_NAMES: Readonly<Record<keyof RunnerOptions, true>> = {
  engine: true,
  confinement: true,
  maxBytes: true,
  maxMessageBytes: true,
  command: true,
  startDeadline: true,
};

const HERE_ONLY: readonly string[] = ["cache", "explain", "perfMap", "parallel"];
const MAX_MESSAGE_BYTES = 1 << 26;
const START_MS = 60_000;
/** The least limit of messages: parts of memories have half of it. */
const MIN_MESSAGE_BYTES = 1 << 21;

/** A runner that has been started. */
export interface OpenRunner {
  readonly connection: Connection;
  readonly measures: readonly Measure[];
}

/**
 * Starts a runner, whose process runs the module `program` unless the options have a command. `extension` is the name
 * of the package on top of the engine that it must serve. Rejects as `Runner.start`.
 */
export async function openRunner(options: RunnerOptions, program: URL, extension?: string): Promise<OpenRunner> {
  requireRecord(options, "The options of a runner");
  requireKnownNames("option of a runner", options, OPTION_NAMES);
  const { engine = {}, confinement = "auto", command = confinableCommand(program) } = options;
  requireRecord(engine, "The option engine");
  for (const name of HERE_ONLY) {
    if (name in engine) throw new TypeError(`A runner's engine cannot have the option ${name}`);
  }
  if (confinement !== "auto" && confinement !== "required" && confinement !== "none") {
    throw new TypeError(`The option confinement is "auto", "required" or "none", not ${inWords(confinement)}`);
  }
  requireTexts(command, "The option command");
  if (command.length === 0) throw new TypeError("The option command must name an executable");
  const maxMessageBytes = wholeNumber(
    options.maxMessageBytes ?? MAX_MESSAGE_BYTES,
    "The option maxMessageBytes",
    2 ** 31,
  );
  const maxBytes = options.maxBytes === undefined
    ? {}
    : { maxBytes: wholeNumber(options.maxBytes, "The option maxBytes") };
  const startDeadline = wholeNumber(options.startDeadline ?? START_MS, "The option startDeadline", 2 ** 31 - 1);
  const connection = new Connection(command, Math.max(maxMessageBytes, MIN_MESSAGE_BYTES));
  const setup: Setup = {
    version: PROTOCOL_VERSION,
    engine: { interruptible: true, ...engine },
    confinement,
    maxMessageBytes: connection.maxBytes,
    ...maxBytes,
    ...(extension === undefined ? {} : { extension }),
  };
  const answer = await connection.start(setup, startDeadline);
  return { connection, measures: connection.reading(() => measuresOf(jsonOf(answer))) };
}

function measuresOf(json: unknown): readonly Measure[] {
  const { version, measures } = (isRecord(json) ? json : {}) as Partial<Ready>;
  if (version !== PROTOCOL_VERSION || !Array.isArray(measures)) {
    throw new ProtocolError("an answer to the first message of another version");
  }
  return measures.map(String) as Measure[];
}

/**
 * A child process whose standard streams are pipes of this program. In: a command, and functions that take its output.
 * Out: functions that write to it and end it. Invariant: nothing is reported after the end, and the child's environment
 * has only the variables that a JavaScript runtime needs to find its files.
 *
 * On Deno, Deno's own interface needs the permission to run the executable and no other; Node's would need the
 * environment, too.
 */
import { environmentVariable, nodeModule } from "./process.ts";
import { ownDeno as own } from "./globals.ts";

/** The variables of the environment that the child gets. */
const VARIABLES = ["HOME", "USERPROFILE", "LOCALAPPDATA", "SystemRoot", "TMPDIR", "TEMP", "DENO_DIR", "XDG_CACHE_HOME"];

/** The end of a process: its status, or the signal that ended it. */
export interface ProcessEnd {
  readonly status: number | null;
  readonly signal: string | null;
}

/** Functions that a process calls. */
interface ProcessListener {
  stdout(bytes: Uint8Array): void;
  stderr(bytes: Uint8Array): void;
  /** Called once, after all output. `error`: the process could not be started. */
  ended(end: ProcessEnd, error?: unknown): void;
}

/** A process that has been started. */
export interface ChildProcess {
  /** Its number; undefined if it could not be started. */
  readonly id: number | undefined;
  /** Writes to its standard input; resolves when there is room for more, and also when the process has ended. */
  write(bytes: Uint8Array): Promise<void> | undefined;
  /** Ends it at once. */
  kill(): void;
}

/**
 * The command that runs a module with the runtime of this program: with no permission but that for native calls, and
 * without files that the process would keep open for writing.
 */
export function confinableCommand(module: URL): readonly string[] {
  if (own !== undefined) {
    return [own.execPath(), "run", "--quiet", "--no-prompt", "--no-code-cache", "--allow-ffi", module.href];
  }
  return [process.execPath, nodeModule("node:url").fileURLToPath(module)];
}

/** Starts a process. A failure to start is reported to the listener. */
export function startProcess(command: readonly string[], listener: ProcessListener): ChildProcess {
  return own === undefined ? startOnNode(command, listener) : startOnDeno(own, command, listener);
}

function childEnvironment(mayRead: (name: string) => boolean): Record<string, string> {
  // Node's rings with a thread of the kernel would evade the filter of a confined process.
  const environment: Record<string, string> = { UV_USE_IO_URING: "0" };
  for (const name of VARIABLES) {
    const value = mayRead(name) ? environmentVariable(name) : undefined;
    if (value !== undefined) environment[name] = value;
  }
  return environment;
}

function startOnDeno(deno: typeof Deno, [executable, ...args]: readonly string[], listener: ProcessListener) {
  const mayRead = (variable: string) => deno.permissions.querySync({ name: "env", variable }).state === "granted";
  let child: Deno.ChildProcess;
  try {
    child = new deno.Command(executable, {
      args,
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
      clearEnv: true,
      env: childEnvironment(mayRead),
    }).spawn();
  } catch (error) {
    queueMicrotask(() => listener.ended({ status: null, signal: null }, error));
    return { id: undefined, write: () => undefined, kill: () => {} };
  }
  const writer = child.stdin.getWriter();
  writer.closed.catch(() => {}); // the end of the process says more
  const streams = [
    readAll(child.stdout, (bytes) => listener.stdout(bytes)),
    readAll(child.stderr, (bytes) => listener.stderr(bytes)),
  ];
  void Promise.all([child.status, ...streams]).then(([{ code, signal }]) =>
    listener.ended({ status: signal === null ? code : null, signal })
  );
  return {
    id: child.pid,
    write: (bytes: Uint8Array) => {
      const done = writer.write(bytes).catch(() => {});
      return bytes.length > SMALL || (writer.desiredSize ?? 0) < -MAX_QUEUED ? done : undefined;
    },
    kill: () => {
      try {
        child.kill("SIGKILL");
      } catch {
        // it has ended
      }
      void writer.abort().catch(() => {});
    },
  };
}

/** Messages of at most this size are not waited for, and at most this number of them is queued. */
const SMALL = 1 << 16;
const MAX_QUEUED = 64;

/** Bytes that one read takes at most. */
const READ_BYTES = 1 << 18;

/** Passes all bytes of a stream on. Small parts are copied, so that their buffer is used again. */
async function readAll(stream: ReadableStream<Uint8Array>, take: (bytes: Uint8Array) => void): Promise<void> {
  const reader = stream.getReader({ mode: "byob" });
  let buffer = new ArrayBuffer(READ_BYTES);
  try {
    for (;;) {
      const { value, done } = await reader.read(new Uint8Array(buffer));
      if (done || value === undefined) return;
      const isSmall = value.length < READ_BYTES / 4;
      take(isSmall ? value.slice() : value);
      buffer = isSmall ? value.buffer : new ArrayBuffer(READ_BYTES);
    }
  } catch {
    // the process has ended
  }
}

function startOnNode([executable, ...args]: readonly string[], listener: ProcessListener): ChildProcess {
  const child = nodeModule("node:child_process").spawn(executable, args, {
    stdio: ["pipe", "pipe", "pipe"],
    env: childEnvironment(() => true),
    windowsHide: true,
  });
  const { stdin, stdout, stderr } = child;
  let isOver = false;
  const end = (status: number | null, signal: string | null, error?: unknown) => {
    if (isOver) return;
    isOver = true;
    listener.ended({ status, signal }, error);
  };
  child.on("error", (error) => end(null, null, error));
  child.on("close", (status, signal) => end(status, signal));
  stdin.on("error", () => {}); // the end of the process says more
  stdout.on("data", (bytes: Uint8Array) => listener.stdout(plain(bytes)));
  stderr.on("data", (bytes: Uint8Array) => listener.stderr(plain(bytes)));
  return {
    id: child.pid,
    write: (bytes) => {
      if (isOver || stdin.write(bytes)) return undefined;
      return new Promise((resolve) => {
        stdin.once("drain", resolve);
        stdin.once("close", resolve);
      });
    },
    kill: () => {
      child.kill("SIGKILL");
      stdin.destroy();
    },
  };
}

/** A Buffer of Node as an array whose `slice` makes a copy. */
function plain({ buffer, byteOffset, length }: Uint8Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, length);
}

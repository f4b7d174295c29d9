/**
 * The arguments of the launch request of the Debug Adapter Protocol, as `waft debug --dap` reads them, and those of the
 * attach request, which debug servers read. Out: one row each, with the JSON schema by which an editor completes and
 * checks a configuration (editors/vscode/package.json repeats it; a test compares them).
 */

/** The schema of one argument. */
interface LaunchArgument {
  readonly type: string | readonly string[];
  readonly description: string;
  readonly default?: unknown;
  readonly items?: { readonly type: string };
  readonly additionalProperties?: { readonly type: string };
}

/** The arguments, by name. */
export const LAUNCH_ARGUMENTS = {
  program: {
    type: "string",
    description: "The module or component, in binary or text form.",
    default: "${workspaceFolder}/program.wasm",
  },
  args: {
    type: "array",
    items: { type: "string" },
    description: "Arguments of the program, or of the function that invoke names.",
    default: [],
  },
  invoke: {
    type: "string",
    description:
      "The exported function to call, instead of running the program; of a component a call with its arguments.",
  },
  env: {
    type: ["object", "array"],
    items: { type: "string" },
    additionalProperties: { type: "string" },
    description: "Environment variables of the program: an object, or a list of NAME=VALUE.",
    default: {},
  },
  dir: {
    type: "array",
    items: { type: "string" },
    description: "Directories of the program: HOST::GUEST, or one path for both.",
    default: [],
  },
  stopOnEntry: { type: "boolean", description: "Stop at the first instruction.", default: false },
} as const satisfies Readonly<Record<string, LaunchArgument>>;

/** The arguments to attach to a running program, by name. */
export const ATTACH_ARGUMENTS = {
  port: { type: "integer", description: "The port of the program's debug server, on this machine." },
  program: {
    type: "string",
    description:
      "The name of the instance to debug, or the file that waft serve --debug serves. Default: the first one.",
  },
  stopOnEntry: { type: "boolean", description: "Stop at the next instruction.", default: false },
} as const satisfies Readonly<Record<string, LaunchArgument>>;

/** The arguments of a launch request, as an editor sent them. */
export type LaunchRequest = { readonly [name in keyof typeof LAUNCH_ARGUMENTS]?: unknown };

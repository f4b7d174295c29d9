/**
 * `init`: creates a project, either minimal or with the files of an application or a publishable plugin.
 *
 * In: the kind of project, and its metadata. Out: the files created. Invariant: nothing is overwritten; if one
 * file exists already, nothing is created. A plugin created here builds, passes `plugin check` and publishes unchanged.
 */
import { dirname, join } from "node:path";
import { fail, ProjectError, quote } from "../../base/diagnostic.ts";
import type { Files } from "../../base/files.ts";
import { explainPluginId } from "../../base/grammar.ts";
import { checkManifest, type PackageMetadata } from "../../manifest/manifest.ts";
import { packageId, templateReadme, TEMPLATES } from "./templates.ts";
import { CATALOG_FILE, CATALOG_SCHEMA, MANIFEST_FILE, MANIFEST_SCHEMA } from "../../base/constants.ts";

/** The project to create. */
export interface InitRequest {
  readonly root: string;
  readonly kind: "quick" | "application" | "plugin" | "template";
  /** With the kind "template": its name. */
  readonly template?: string;
  readonly name?: string;
  readonly module?: string;
  readonly description?: string;
  readonly license?: string;
  readonly repository?: string;
  readonly version?: string;
  readonly author?: string;
  /** Turns text-format source into a module; a plugin is then ready to publish at once. */
  readonly assemble?: (text: string) => Uint8Array;
}

/** The created project. */
export interface InitResult {
  readonly kind: string;
  readonly root: string;
  readonly created: readonly string[];
}

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const json = (value: unknown): Uint8Array => encode(`${JSON.stringify(value, null, 2)}\n`);

/** Creates a project. */
export async function initProject(request: InitRequest, files: Files): Promise<InitResult> {
  const contents = request.kind === "quick"
    ? new Map([[MANIFEST_FILE, json({ $schema: MANIFEST_SCHEMA, plugins: {} })]])
    : request.kind === "application"
    ? applicationFiles(request)
    : request.kind === "template"
    ? templateFiles(request)
    : pluginFiles(request);
  const checked = await checkManifest(contents.get(MANIFEST_FILE)!);
  if (checked.read === undefined) {
    throw new ProjectError(checked.diagnostics.map((d) => ({ ...d, code: "usage.value" })));
  }
  for (const path of contents.keys()) {
    if (await files.status(join(request.root, path)) !== undefined) {
      throw fail("project.exists", `${path} exists already; nothing was created`, {
        file: path,
        help: "run `waft init` in another directory",
      });
    }
  }
  await files.makeDirectory(request.root);
  // Write the manifest last: its presence makes the directory a project.
  const order = [...contents.keys()].sort((a, b) =>
    Number(a === MANIFEST_FILE) - Number(b === MANIFEST_FILE) || (a < b ? -1 : 1)
  );
  for (const path of order) {
    const full = join(request.root, ...path.split("/"));
    await files.makeDirectory(dirname(full));
    if (!await files.create(full, contents.get(path)!)) {
      throw fail("project.exists", `${path} appeared while the project was created`, { file: path });
    }
  }
  return { kind: request.kind, root: request.root, created: [...contents.keys()].sort() };
}

/** The flags that a full setup needs and that are missing. */
export function missingFlags(request: Omit<InitRequest, "root">): string[] {
  const needed: readonly (keyof InitRequest)[] = request.kind === "plugin"
    ? ["name", "module", "description", "license", "repository"]
    : request.kind === "application"
    ? ["name"]
    : [];
  return needed.filter((name) => {
    const value = (request as { readonly [name: string]: unknown })[name];
    return value === undefined || value === "";
  }).map((name) => `--${name}`);
}

function templateFiles({ template: wanted, name = "program" }: InitRequest): Map<string, Uint8Array> {
  const template = TEMPLATES.find((each) => each.name === wanted);
  if (template === undefined) {
    throw fail("usage.init", `there is no template ${quote(wanted ?? "", 60)}`, {
      help: `the templates are ${TEMPLATES.map((each) => each.name).join(", ")}`,
    });
  }
  return new Map([
    [MANIFEST_FILE, json({ $schema: MANIFEST_SCHEMA, plugins: {} })],
    ["README.md", encode(templateReadme(name.replaceAll("\n", " "), template))],
    ...Object.entries(template.files(packageId(name))).map(([path, text]) => [path, encode(text)] as const),
  ]);
}

const IGNORE = "/.cache/\n*.log\n";

function applicationFiles(request: InitRequest): Map<string, Uint8Array> {
  const name = request.name!;
  return new Map([
    [MANIFEST_FILE, json({ $schema: MANIFEST_SCHEMA, plugins: {}, settings: {} })],
    [
      "main.wat",
      encode(`;; ${name.replaceAll("\n", " ")}: run with \`waft run main.wat 20 22\`.
(module
  (func (export "add") (param $a i32) (param $b i32) (result i32)
    (i32.add (local.get $a) (local.get $b))))
`),
    ],
    [
      "README.md",
      encode(
        `# ${name}\n\n\`\`\`sh\nwaft run main.wat 20 22   # prints 42\nwaft add <plugin>         # adds a plugin, after a review of what it may do\nwaft status\n\`\`\`\n`,
      ),
    ],
    [".gitignore", encode(IGNORE)],
  ]);
}

function pluginFiles(request: InitRequest): Map<string, Uint8Array> {
  const { name, module, description, license, repository } = request;
  const wrong = explainPluginId(module!);
  if (wrong !== undefined) {
    throw fail("usage.plugin-id", `--module ${JSON.stringify(module)} is not a plugin id: ${wrong.reason}`, {
      help: wrong.help,
    });
  }
  const metadata: PackageMetadata = {
    module: module!,
    version: request.version ?? "0.1.0",
    name: name!,
    description: description!,
    stability: "experimental",
    license: license!,
    repository: repository!,
    authors: [{ name: request.author ?? module!.split("/")[1] ?? module! }],
  };
  const contract = `${module}/contracts/greet`;
  const source = pluginSource(contract);
  const contents = new Map([
    [MANIFEST_FILE, json({ $schema: MANIFEST_SCHEMA, plugins: {}, package: metadata })],
    [
      CATALOG_FILE,
      json({
        $schema: CATALOG_SCHEMA,
        plugins: [{
          entry: "dist/plugin.wasm",
          definition: {
            id: module,
            authorities: [{
              name: "caller.memory.write",
              mode: "required",
              reason: "Writes the greeting where the caller asks for it.",
            }],
            provides: [{
              id: contract,
              major: 1,
              functions: [{ name: "greet", params: ["i64", "i32"], results: ["i32"] }],
            }],
          },
        }],
      }),
    ],
    ["src/plugin.wat", encode(source)],
    ["test/guest.wat", encode(guestSource(contract))],
    ["README.md", encode(pluginReadme(name!, description!, contract))],
    [".gitignore", encode(IGNORE)],
  ]);
  if (request.assemble !== undefined) contents.set("dist/plugin.wasm", request.assemble(source));
  return contents;
}

function pluginSource(contract: string): string {
  return `;; Writes a greeting into the memory of the caller.
;; Build: waft parse src/plugin.wat -o dist/plugin.wasm
(module
  (import "waft:caller@1" "write" (func $write (param i64 i32 i32) (result i32)))
  (memory 1)
  (data (i32.const 0) "hello from a plugin")
  ;; greet(where, room): bytes written, or -1 when the caller gave no room or no memory
  (func (export "${contract}@1#greet") (param $where i64) (param $room i32) (result i32)
    (if (i32.lt_u (local.get $room) (i32.const 19)) (then (return (i32.const -1))))
    (if (call $write (local.get $where) (i32.const 0) (i32.const 19)) (then (return (i32.const -1))))
    (i32.const 19)))
`;
}

function guestSource(contract: string): string {
  return `;; A guest that uses the plugin: prints the number of bytes that it was given.
(module
  (import "${contract}@1" "greet" (func $greet (param i64 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "test") (result i32)
    (call $greet (i64.const 1024) (i32.const 64))))
`;
}

function pluginReadme(name: string, description: string, contract: string): string {
  return `# ${name}

${description}

Provides the contract \`${contract}@1\` with \`greet(where: i64, room: i32) -> i32\`.

\`\`\`sh
waft parse src/plugin.wat -o dist/plugin.wasm   # build
waft plugin publish --dry-run                   # every check that publishing makes
waft plugin inspect .                           # what users will see and review
\`\`\`

To try it, add it to a project that contains this directory (\`waft add ./path/to/this\`) and run \`test/guest.wat\`:
it prints 19.
`;
}

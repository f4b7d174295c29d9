/**
 * The npm package create-waft, so that `npm create waft FOLDER` starts a project from the templates of `waft init`. In:
 * the version of all packages, and the text of the license. Out: the files of the package.
 */

/**
 * The program: `create-waft [FOLDER] [OPTION…]` makes the folder and runs `waft init` in it with the options; without a
 * folder, in the current one.
 */
const PROGRAM = `#!/usr/bin/env node
import { mkdirSync } from "node:fs";
import process from "node:process";
import { main } from "@waft/cli";

const words = process.argv.slice(2);
if (words.length > 0 && !words[0].startsWith("-")) {
  const folder = words.shift();
  mkdirSync(folder, { recursive: true });
  process.chdir(folder);
  console.log("In " + folder + ":");
}
process.exitCode = await main(["init", ...words]);
`;

const README = `# create-waft

Starts a project of [waft](https://waft.sh), a WebAssembly engine:

\`\`\`sh
npm create waft my-project -- --template typescript
\`\`\`

The templates are those of \`waft init\`: \`typescript\`, \`assemblyscript\`, \`c\`, \`rust\` and \`http\`. Without
\`--template\`, it asks. See [Getting started](https://waft.sh/getting-started).
`;

/** The files of the package. `engines` are the runtimes that the packages support. */
export function createWaftFiles(
  version: string,
  engines: Readonly<Record<string, string>>,
  license: Uint8Array,
): Map<string, Uint8Array> {
  const manifest = {
    name: "create-waft",
    version,
    description: "Starts a project of waft: npm create waft",
    license: "Apache-2.0",
    homepage: "https://waft.sh",
    type: "module",
    bin: { "create-waft": "index.js" },
    engines,
    dependencies: { "@waft/cli": version },
    keywords: ["webassembly", "wasm", "create", "template"],
  };
  const text = (content: string): Uint8Array => new TextEncoder().encode(content);
  return new Map([
    ["package.json", text(`${JSON.stringify(manifest, null, 2)}\n`)],
    ["index.js", text(PROGRAM)],
    ["README.md", text(README)],
    ["LICENSE", license],
  ]);
}

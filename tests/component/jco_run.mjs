/**
 * Runs a component with jco on Node: node jco_run.mjs CONFIGURATION. In: a configuration in JSON: root (the folder with
 * the npm packages), file, args, env, directory, and a function with its arguments, unless it is a command. Out: the
 * program's output and status; of a function its result in JSON.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";

const given = JSON.parse(process.argv[2]);
const packages = join(given.root, "node_modules", "@bytecodealliance");
const { transpile } = await import(pathToFileURL(join(packages, "jco", "dist", "api.js")).href);
const shim = (name) => import(pathToFileURL(join(packages, "preview2-shim", "dist", "nodejs", name)).href);
// Beside the packages, so that the modules find them. The caller removes the folders of processes that it ends.
const folder = mkdtempSync(join(given.root, "node_modules", ".run-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const { files } = await transpile(readFileSync(given.file), { name: "component", tlaCompat: false });
for (const [name, content] of Object.entries(files)) {
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), content);
}
writeFileSync(join(folder, "package.json"), '{"type":"module"}');
const { _setArgs, _setCwd, _setEnv } = await shim("cli.js");
const { _setPreopens } = await shim("filesystem.js");
_setArgs(["program", ...given.args]);
_setEnv(Object.fromEntries(given.env));
_setCwd(undefined);
_setPreopens(given.directory === null ? {} : { "/data": given.directory });
const component = await import(pathToFileURL(join(folder, "component.js")).href);
if (given.call !== undefined) console.log(JSON.stringify(component[given.call](...given.arguments)));
else {
  try {
    component.run.run();
  } catch (error) {
    if (error?.payload !== undefined || error instanceof WebAssembly.RuntimeError) process.exit(1);
    throw error;
  }
}
process.exit(0);

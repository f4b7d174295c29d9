/**
 * The lockfile of the command, deno.command.lock: the part of deno.lock that `cli.ts` needs, so that a checkout runs
 * the command without the packages of tests. To renew it, remove it and run this, which names late modules, too:
 *
 * ```sh
 * deno cache --lock=deno.command.lock cli.ts mod.ts \
 *   $(git ls-files 'component/*.ts' 'project/*.ts' 'registry/*.ts' | grep -v '_test\.ts$')
 * ```
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

interface Lock {
  readonly specifiers: Readonly<Record<string, string>>;
  readonly npm: Readonly<Record<string, { readonly integrity: string }>>;
}

function read<T>(name: string): T {
  return JSON.parse(readFileSync(join(ROOT, name), "utf8")) as T;
}

/** The bare specifiers that the command's modules import. */
function imported(): Set<string> {
  const found = new Set<string>();
  for (const folder of ["component", "project", "registry"]) {
    for (const name of readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })) {
      if (!name.endsWith(".ts") || name.endsWith("_test.ts") || name.includes("testing")) continue;
      const text = readFileSync(join(ROOT, folder, name), "utf8");
      for (const [, specifier] of text.matchAll(/^(?:import|export) (?!type )[^;]*?from "([^".][^"]*)";/gms)) {
        found.add(specifier);
      }
    }
  }
  return found;
}

Deno.test("the command's lockfile has the versions and digests of deno.lock, and no package of tests", () => {
  const all = read<Lock>("deno.lock");
  const own = read<Lock>("deno.command.lock");
  for (const [specifier, version] of Object.entries(own.specifiers)) assert.equal(all.specifiers[specifier], version);
  for (const [name, { integrity }] of Object.entries(own.npm)) assert.equal(all.npm[name]?.integrity, integrity, name);
  for (const name of ["assemblyscript", "binaryen", "playwright-core", "typescript", "axe-core", "acorn"]) {
    assert.ok(!Object.keys(own.npm).some((key) => key.startsWith(`${name}@`)), name);
  }
});

Deno.test("the command's lockfile has every package that the command imports", () => {
  const { imports } = read<{ imports: Record<string, string> }>("deno.json");
  const own = read<Lock>("deno.command.lock");
  const locked = Object.keys(own.specifiers).map((specifier) => specifier.replace(/^npm:(.+)@[^@]*$/, "$1"));
  const missing = [...imported()].map((specifier) =>
    specifier.split("/").slice(0, specifier[0] === "@" ? 2 : 1).join("/")
  )
    .filter((name) => Object.hasOwn(imports, name) && !locked.includes(name));
  assert.deepEqual([...new Set(missing)], []);
});

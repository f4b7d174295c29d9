/**
 * WIT of the suite: WASI's packages are read and print to text with the same content, and every component of the suite
 * has a WIT form that parses.
 */
import assert from "node:assert/strict";
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decodeComponent } from "../../component/binary/decode.ts";
import { validateComponent } from "../../component/validate/validate_component.ts";
import type { WitPackage } from "../../component/wit/document.ts";
import { witOfComponent } from "../../component/wit/from_component.ts";
import { loadWit } from "../../component/wit/load.ts";
import { parseWit } from "../../component/wit/parse.ts";
import { describeWorld, printPackage } from "../../component/wit/print.ts";
import { resolveWit } from "../../component/wit/resolve.ts";
import {
  commandBytes,
  commandsOf,
  componentScripts,
  HAS_COMPONENT_BINARIES,
  NEEDS_COMPONENT_BINARIES,
} from "../support/component_suite.ts";
import { WaftError } from "../../engine/errors.ts";
import { suiteFolder, suiteNamed } from "../support/suites.ts";

const WASI = join(suiteFolder(suiteNamed("components")), "wit");
const RELEASES = existsSync(WASI) ? readdirSync(WASI) : [];

/**
 * Components of the suite that no world describes: a type of an inline interface occurs outside of it, and the like.
 */
const NOT_WIT = 8;

/** A package and everything in it as data, worlds first. */
function describe(root: WitPackage, packages: Iterable<WitPackage>): object {
  return {
    text: printPackage(root, packages),
    worlds: [...root.worlds.values()].map(describeWorld),
  };
}

function reparse(text: string) {
  return resolveWit([parseWit({ file: "printed.wit", text })], [], { allFeatures: true });
}

for (const release of RELEASES) {
  for (const proposal of readdirSync(join(WASI, release, "proposals"))) {
    Deno.test(`wasi:${proposal} ${release} prints to the same packages`, () => {
      const folder = mkdtempSync(join(tmpdir(), "wit-"));
      try {
        const proposals = join(WASI, release, "proposals");
        cpSync(join(proposals, proposal, "wit"), folder, { recursive: true });
        for (const other of readdirSync(proposals)) {
          if (other !== proposal) {
            cpSync(join(proposals, other, "wit"), join(folder, "deps", other), { recursive: true });
          }
        }
        const { root, packages } = loadWit(folder, { allFeatures: true });
        assert.equal(`${root.name.namespace}:${root.name.name}`, `wasi:${proposal}`);
        const others = [root, ...packages.values()];
        const again = reparse(printPackage(root, others));
        assert.deepEqual(describe(again.root, again.packages.values()), describe(root, others));
      } finally {
        rmSync(folder, { recursive: true });
      }
    });
  }
}

Deno.test({
  name: `WASI's WIT is present${RELEASES.length === 0 ? " (needs the folder wit of the component model's suite)" : ""}`,
  ignore: RELEASES.length === 0,
  fn: () => assert.deepEqual(RELEASES.toSorted(), ["v0.2.12", "v0.3.0"]),
});

Deno.test({
  name:
    `all but a few valid components of the suite have a world that prints to the same WIT${NEEDS_COMPONENT_BINARIES}`,
  ignore: !HAS_COMPONENT_BINARIES,
  fn: () => {
    let worlds = 0;
    const notWit: string[] = [];
    for (const script of componentScripts()) {
      for (const { type, filename } of commandsOf(script)) {
        if (filename === undefined || (type !== "module" && type !== "module_definition")) continue;
        worlds++;
        const component = validateComponent(decodeComponent(commandBytes(script, filename)));
        try {
          const { root, packages, omitted } = witOfComponent(component);
          const text = printPackage(root, packages.values());
          const again = reparse(text);
          if (omitted.length > 0) continue;
          assert.equal(printPackage(again.root, again.packages.values()), text, `${script}/${filename}`);
        } catch (error) {
          if (!(error instanceof WaftError)) throw error;
          notWit.push(`${filename}: ${error.message}`);
        }
      }
    }
    assert.equal(worlds, 284);
    assert.ok(notWit.length <= NOT_WIT, notWit.join("\n"));
  },
});

/**
 * WIT of the suite: WASI's packages are read and print to text with the same content, and every component of the suite
 * has a WIT form that parses.
 */
import assert from "node:assert/strict";
import { decodeComponent } from "../../component/binary/decode.ts";
import { validateComponent } from "../../component/validate/validate_component.ts";
import type { WitPackage } from "../../component/wit/document.ts";
import { witOfComponent } from "../../component/wit/from_component.ts";
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
import { WaftError } from "../../engine/base/errors.ts";
import { loadProposal, proposalsOf, WASI_RELEASES } from "../support/wasi_wit.ts";

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

for (const release of WASI_RELEASES) {
  for (const proposal of proposalsOf(release)) {
    Deno.test(`wasi:${proposal} ${release} prints to the same packages`, () => {
      const { root, packages } = loadProposal(release, proposal, { allFeatures: true });
      assert.equal(`${root.name.namespace}:${root.name.name}`, `wasi:${proposal}`);
      const others = [root, ...packages.values()];
      const again = reparse(printPackage(root, others));
      assert.deepEqual(describe(again.root, again.packages.values()), describe(root, others));
    });
  }
}

Deno.test({
  name: `WASI's WIT is present${
    WASI_RELEASES.length === 0 ? " (needs the folder wit of the component model's suite)" : ""
  }`,
  ignore: WASI_RELEASES.length === 0,
  fn: () => assert.deepEqual([...WASI_RELEASES], ["v0.2.12", "v0.3.0"]),
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

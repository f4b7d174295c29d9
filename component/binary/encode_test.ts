/**
 * Encoding is the inverse of decoding, for every valid component of the suite.
 */
import assert from "node:assert/strict";
import {
  commandBytes,
  commandsOf,
  componentScripts,
  HAS_COMPONENT_BINARIES,
  NEEDS_COMPONENT_BINARIES,
} from "../../tests/support/component_suite.ts";
import type { Component } from "../model/definitions.ts";
import { decodeComponent } from "./decode.ts";
import { encodeComponent } from "./encode.ts";

/** A component without offsets and byte ranges, which depend on the encoding. */
function content(component: Component): string {
  return JSON.stringify(component, (key, value) => {
    if (key === "offset") return undefined;
    if (key === "bytes" && value instanceof Uint8Array) return [...value].join();
    if (typeof value === "bigint") return String(value);
    if (value?.definitions !== undefined && value.bytes !== undefined) return { ...value, bytes: undefined };
    return value;
  });
}

Deno.test({
  name: `encoding a decoded component gives an equal component${NEEDS_COMPONENT_BINARIES}`,
  ignore: !HAS_COMPONENT_BINARIES,
  fn: () => {
    let encoded = 0;
    for (const script of componentScripts()) {
      for (const { type, filename } of commandsOf(script)) {
        if (filename === undefined || type === "assert_malformed") continue;
        const bytes = commandBytes(script, filename);
        let component: Component;
        try {
          component = decodeComponent(bytes);
        } catch {
          continue; // Rejected by decoding, with an InvalidError.
        }
        const again = decodeComponent(encodeComponent(component));
        assert.equal(content(again), content(component), `${script}/${filename}`);
        encoded++;
      }
    }
    assert.ok(encoded > 660, `${encoded} components`);
  },
});

/** The baseline tier and the validator agree on generated modules and on mutants; `deno task agree` compares more. */
import assert from "node:assert/strict";
import { compareSeed } from "./agreement.ts";

Deno.test("the baseline tier and the validator agree on bodies with changed bytes", () => {
  let invalid = 0;
  let total = 0;
  for (let seed = 0; seed < 60; seed++) {
    const compared = compareSeed(seed);
    total += compared.total;
    invalid += compared.invalid;
  }
  assert(invalid > total / 4, `${invalid} of ${total} are invalid`);
  assert(invalid < total, "some mutants are valid");
});

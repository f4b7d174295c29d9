/**
 * For custom_descriptors_test.ts: a realm whose modules may use custom descriptors. In: scripts of the proposal's
 * suite, in the order in which they are loaded. Out: the outcomes of their tests.
 */
import { configure, WebAssembly } from "@waft/engine/webassembly";
import { serve } from "../support/test_worker.ts";
import { runScripts } from "./api_harness.ts";

configure({ features: { "custom-descriptors": true } });
serve((scripts: string[]) => runScripts(scripts, WebAssembly));

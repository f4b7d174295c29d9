/**
 * For strings_test.ts: a separate realm that runs random programs.
 */
import { serve } from "../support/test_worker.ts";
import { playAlone } from "./string_programs.ts";

serve(playAlone);

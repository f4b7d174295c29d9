/** For strings_test.ts: a realm of its own, which runs random programs. */
import { serve } from "../support/test_worker.ts";
import { playAlone } from "./string_programs.ts";

serve(playAlone);

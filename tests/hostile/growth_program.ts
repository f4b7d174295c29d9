/**
 * The program of growth_test.ts: measures the growth of costs in a process of its own. In: the word for
 * measure_growth.ts. Out: its lines.
 */
import process from "node:process";
import { measure } from "./measure_growth.ts";

measure(process.argv[2]);

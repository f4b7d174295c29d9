/**
 * Recordings: everything that enters a guest in a log, and the same run again without its host.
 *
 * @module
 */
export { Recorder, type RecordingEnd } from "./recorder.ts";
export { replay, type ReplayedHostCall, type ReplayEnd, type ReplayOptions } from "./replay.ts";
export { RecordingError } from "./log_file.ts";

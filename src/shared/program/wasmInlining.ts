import { setFlagsFromString } from "node:v8"

/**
 * Keeps V8 from inlining functions of WebAssembly into each other, before any is compiled. In Node 26.12.1 the optimizing compiler ends the
 * process with "Check failed: function_feedback != feedback.feedback_for_function.end()" on a busy embedded database, which is WebAssembly.
 * Node 22 and 24 have the flag as well.
 */
export const withoutWasmInlining = (): void => setFlagsFromString("--no-wasm-inlining")

/** A thread of the local model that is about to load it, and refuses the text that it got. */
import { setFlagsFromString } from "node:v8"
import { parentPort } from "node:worker_threads"

setFlagsFromString("--no-liftoff")
parentPort?.on("message", () => parentPort?.postMessage({ _tag: "Refused", problem: "still loading" }, []))

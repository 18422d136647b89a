/** Empties a folder as the user that it is started as: argument one is the folder, the others are what has to be kept. */
import { NodeRuntime } from "@effect/platform-node"
import { emptyWorkspace } from "#src/choird/runtime/emptyWorkspace.ts"

const [folder = "", ...kept] = process.argv.slice(2)

NodeRuntime.runMain(emptyWorkspace(folder, kept))

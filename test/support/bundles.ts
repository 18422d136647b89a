/** The programs as they are built, which the tests' setup does before they run. */
import { join } from "node:path"
import { Layer } from "effect"
import { ChoirdProgram } from "#src/choirctl/daemon/choirdProgram.ts"

export const BUNDLES = join(import.meta.dirname, "../../dist")

/** The choird that a choirctl of the sources starts: of the same sources, and loaded in a fraction of the time. */
export const bundledChoird = Layer.succeed(ChoirdProgram, join(BUNDLES, "choird.js"))

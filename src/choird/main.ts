/** The program choird: runs in the foreground until it receives a signal to stop. */
import { startProgram } from "#src/shared/program/startProgram.ts"

await startProgram("choird", () => import("./run.ts"))

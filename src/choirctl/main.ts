/** The program choirctl, the operator's command line. */
import { startProgram } from "#src/shared/program/startProgram.ts"

await startProgram("error", () => import("./run.ts"))

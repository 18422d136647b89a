/** The flag of commands whose next steps their caller takes itself. */
import { Flag } from "effect/cli"

export const briefFlag = Flag.Boolean("brief").pipe(
  Flag.withDescription("Print only problems"),
  Flag.withDefault(false)
)

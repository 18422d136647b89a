/** The program that reads one mail, as the build made it, and the same within this process, for tests of what it reads. */
import { join } from "node:path"
import { readMime } from "#src/agent/mail/readMime.ts"
import { type ShownMail, shownMail } from "#src/agent/mail/shownMail.ts"
import { packageFolder } from "#src/shared/files/packageFolder.ts"
import { MAIL_READER } from "#src/shared/program/compiledProgram.ts"

export const MAIL_READER_PROGRAM = join(packageFolder, "dist", `choir-agent${MAIL_READER}`)

/** A mail as a model is shown it. */
export const readHere = async (raw: Uint8Array): Promise<ShownMail> =>
  shownMail(await readMime(raw, { withFiles: false }))

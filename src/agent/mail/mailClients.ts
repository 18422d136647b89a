/** The clients of mail servers and the parser of mail. Most agents never load them: in the build they are a file beside the agent's program. */
export { ImapFlow } from "imapflow"
export { createTransport } from "nodemailer"
export { default as MailComposer } from "nodemailer/lib/mail-composer"
export { boundedMime } from "./boundedMime.ts"

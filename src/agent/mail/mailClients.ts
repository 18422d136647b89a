/** What speaks to mail servers and takes mail apart. Most agents never load it: in the build it is a file of its own, beside the agent's program. */
export { ImapFlow } from "imapflow"
export { createTransport } from "nodemailer"
export { default as MailComposer } from "nodemailer/lib/mail-composer"
export { boundedMime } from "./boundedMime.ts"

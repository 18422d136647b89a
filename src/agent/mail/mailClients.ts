/** The clients of mail servers. Most agents never load them: in the build they are a file beside the agent's program. */
export { ImapFlow } from "imapflow"
export { createTransport } from "nodemailer"
export { default as MailComposer } from "nodemailer/lib/mail-composer"

/** Texts that a person read and found right, in files. `CHOIR_GOLDEN=write npx vitest run …` writes them anew; read what it changed. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { assert } from "@effect/vitest"
import type { ShownMail } from "#src/agent/mail/shownMail.ts"

const isWritten = process.env["CHOIR_GOLDEN"] === "write"

/** Compares a text with the one in a file. */
export const matchesGolden = (path: string, text: string): void => {
  if (isWritten) {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, `${text}\n`)
  }
  assert.isTrue(existsSync(path), `${path} is missing`)
  assert.strictEqual(`${text}\n`, readFileSync(path, "utf8"), path)
}

/** A mail as one text. */
export const mailText = (mail: ShownMail): string => {
  const { cc, files, from, from_name, is_cut, reply_to, subject, text, to, traits } = mail
  const lines = {
    from: from_name === "" ? from : `${from_name} <${from}>`,
    to: to.join(", "),
    cc: cc.join(", "),
    "reply to": reply_to.join(", "),
    subject,
    traits: [...traits, ...(is_cut ? ["cut"] : [])].join(", "),
    files: files.map(({ bytes, name, type }) => `${name} (${type}, ${bytes})`).join(", ")
  }
  const head = Object.entries(lines).flatMap(([key, value]) => (value === "" ? [] : [`${key}: ${value}`]))
  return `${head.join("\n")}\n\n${text}`
}

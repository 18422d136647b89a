/** A shape in which one of the common programs writes mails. Its words are marks, and so is the name of its set of characters. */
import type { Multipart, Part } from "./compose.ts"

/** Stands where nobody who looks at the mail sees it. */
export const HIDDEN = "UNSEEN-BY-PEOPLE"

export interface Shape {
  readonly name: string
  readonly subject: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body: Part | Multipart
  /** Its outermost part says what the mail is, so that nothing is put around it. */
  readonly isWhole?: boolean
}

export const text = (body: string, headers: Readonly<Record<string, string>> = {}, more = ""): Part => ({
  type: `text/plain${more}`,
  body,
  headers
})
export const html = (body: string): Part => ({ type: "text/html", body })
export const both = (plain: string, rich: string): Multipart => ({
  multipart: "alternative",
  parts: [text(plain), html(rich)]
})
export const picture = (name: string): Part => ({
  type: `image/png; name="${name}"`,
  body: Buffer.from("89504e470d0a1a0a", "hex"),
  headers: { "Content-Disposition": `inline; filename="${name}"`, "Content-ID": `<${name}@choir.test>` }
})

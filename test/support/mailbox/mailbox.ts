/** A mailbox of 300 mails: each shape in several languages, sets of characters, encodings and wrappings. */
import { mailBytes, type Multipart, type Part, word, type Writing } from "./compose.ts"
import { MARKS, PACKS, type Pack } from "./packs.ts"
import { PEOPLE_SHAPES } from "./peopleShapes.ts"
import { PROGRAM_SHAPES } from "./programShapes.ts"
import { picture, type Shape } from "./Shape.ts"

export const SHAPES: ReadonlyArray<Shape> = [...PEOPLE_SHAPES, ...PROGRAM_SHAPES]

export interface Filed {
  readonly id: string
  readonly shape: Shape
  readonly pack: Pack
  readonly raw: Buffer
}

const spelled = (text: string, { words }: Pack, { set }: Writing): string =>
  MARKS.reduce((all, mark, at) => all.replaceAll(mark, words[at] ?? ""), text).replaceAll("{set}", set)

/** The marks in the places of the words of a language. */
export const marked = (text: string, { words }: Pack): string =>
  MARKS.reduce((all, mark, at) => all.replaceAll(words[at] ?? "", mark), text)

const spelledPart = (part: Part | Multipart, pack: Pack, writing: Writing): Part | Multipart => {
  if ("multipart" in part) return { ...part, parts: part.parts.map((each) => spelledPart(each, pack, writing)) }
  return typeof part.body === "string" ? { ...part, body: spelled(part.body, pack, writing) } : part
}

const SIGNATURE: Part = { type: "application/pkcs7-signature; name=smime.p7s", body: Buffer.from("3080", "hex") }
const WRAPPINGS: ReadonlyArray<(body: Part | Multipart) => Part | Multipart> = [
  (body) => body,
  (body) => ({ multipart: "mixed", parts: [body, picture("a.png")] }),
  (body) => ({
    multipart: 'signed; protocol="application/pkcs7-signature"; micalg=sha-256;',
    parts: [body, SIGNATURE]
  }),
  (body) => ({ multipart: "related", parts: [body, picture("b.png")] })
]

const ENCODINGS = ["quoted-printable", "base64", "8bit"] as const

const writingOf = ({ sets }: Pack, n: number): Writing => {
  const set = sets[n % sets.length] ?? "utf-8"
  const isPlain = set === "us-ascii" || set === "iso-2022-jp"
  return { set, encoding: isPlain ? "7bit" : (ENCODINGS[n % ENCODINGS.length] ?? "8bit") }
}

/** @param size how many mails there are. */
export const makeMailbox = (size: number): ReadonlyArray<Filed> =>
  Array.from({ length: size }, (_, at) => {
    const [index, round] = [at % SHAPES.length, Math.floor(at / SHAPES.length)]
    const shape = SHAPES[index] as Shape
    const pack = PACKS[(3 * index + round) % PACKS.length] as Pack
    const writing = writingOf(pack, index + round)
    const wrap = WRAPPINGS[(index + round) % WRAPPINGS.length] ?? ((body: Part | Multipart) => body)
    const id = `${shape.name}-${round}@choir.test`
    const headers = {
      From: `${word(pack.words[0], writing)} <ada@example.org>`,
      To: "bob@choir.test",
      Subject: word(spelled(shape.subject, pack, writing), writing),
      Date: "Mon, 23 Nov 2026 10:00:00 +0100",
      "Message-ID": `<${id}>`,
      ...shape.headers
    }
    const body = spelledPart(shape.body, pack, writing)
    return { id, shape, pack, raw: mailBytes(headers, shape.isWhole === true ? body : wrap(body), writing) }
  })

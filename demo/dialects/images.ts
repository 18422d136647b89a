/** Images in requests: what providers check of one, and what it weighs in a prompt. */
import { isObject, type Keys, listOf } from "./jsonKeys.ts"
import { family, firstOf, type Problem, type Traits } from "./Rule.ts"

/** https://docs.claude.com/en/docs/build-with-claude/vision: an image in base64, its longer side, and about the tokens of a large one. */
export const IMAGE_CHARS_MAX = 5 * 1024 * 1024
const IMAGE_TOKENS = 1600

/** The beginnings of the formats, in base64. */
const BEGINNINGS: Readonly<Record<string, RegExp>> = {
  "image/png": /^iVBORw0KGg/u,
  "image/jpeg": /^\/9j\//u,
  "image/gif": /^R0lGOD/u,
  "image/webp": /^UklGR.{6}XRUJQ/u
}

export const IMAGE_TYPES = Object.keys(BEGINNINGS)

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/u

/** Whether data is an image of the type that the request says. */
export const isImage = (type: unknown, data: unknown): boolean =>
  typeof data === "string" && BASE64.test(data) && BEGINNINGS[String(type)]?.test(data) === true

/** The type and the data of an image that is in a request itself. */
const inDataUrl = (url: unknown): { readonly type: string; readonly data: string } | undefined => {
  const match = typeof url === "string" ? /^data:([^;,]+);base64,(.*)$/su.exec(url) : null
  return match === null ? undefined : { type: match[1] ?? "", data: match[2] ?? "" }
}

/** Whether the model of a request takes images. */
export const sees = (model: unknown, { vision }: Traits): boolean => vision ?? family(model).sees

/** https://platform.openai.com/docs/guides/images-vision, OpenHands/OpenHands#7700 */
export const urlProblem = (url: unknown, at: string): Problem | undefined => {
  const { data, type } = inDataUrl(url) ?? {}
  if (isImage(type, data)) return undefined
  return {
    message:
      "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].",
    param: at,
    code: "image_parse_error"
  }
}

/** Images of the user's messages and of results, as OpenAI's Responses take them. */
export const responsesImageProblem = (body: Keys, traits: Traits): Problem | undefined =>
  firstOf(listOf(body["input"]).filter(isObject), ({ content, output }, index) =>
    firstOf([...listOf(content), ...listOf(output)].filter(isObject), ({ image_url, type }) => {
      const at = `input[${index}]`
      if (type !== "input_image") return undefined
      return sees(body["model"], traits)
        ? urlProblem(image_url, at)
        : { message: "Invalid content type. input_image is only supported by certain models.", param: at }
    })
  )

/** Base64 of images, wherever it stands in a request. */
const DATA = /(?<=(?:;base64,|"data":"))[A-Za-z0-9+/]{16,}={0,2}(?=")/gu

/** A part of a request as JSON without the data of its images, and the tokens that these are. */
export const weighed = (json: string): { readonly text: string; readonly tokens: number } => {
  let images = 0
  const text = json.replaceAll(DATA, (data) => {
    images += 1
    // Two images are two prompts.
    return `${data.length}.${data.slice(-16)}`
  })
  return { text, tokens: images * IMAGE_TOKENS }
}

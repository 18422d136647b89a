/** Images in requests to Anthropic's API: https://docs.claude.com/en/docs/build-with-claude/vision */
import { IMAGE_CHARS_MAX, IMAGE_TYPES, isImage, sees } from "./images.ts"
import { isObject, type Keys, listOf } from "./jsonKeys.ts"
import { eachBlock, say } from "./messagesBlocks.ts"
import { firstOf, type Problem, type Rule } from "./Rule.ts"

/** Images and the places in which they may stand: a message of the user, or a result in one. */
const imageProblem = (body: Keys, traits: Parameters<Rule["find"]>[1]): Problem | undefined => {
  const check = (block: Keys, at: string, role: unknown): Problem | undefined => {
    if (block["type"] === "tool_result")
      return firstOf(listOf(block["content"]).filter(isObject), (part, of) =>
        check(part, `${at}.tool_result.content.${of}`, role)
      )
    if (block["type"] !== "image") return undefined
    if (role !== "user") return say(`${at}: \`image\` blocks can only be in \`user\` messages`)
    if (!sees(body["model"], traits)) return say(`${at}: image input is not supported for this model`)
    const { data, media_type, type } = isObject(block["source"]) ? block["source"] : {}
    const source = `${at}.image.source.base64`
    if (type !== "base64") return say(`${at}.image.source: Input tag '${String(type)}' is not expected here`)
    if (!IMAGE_TYPES.includes(String(media_type)))
      return say(`${source}.media_type: Input should be ${IMAGE_TYPES.map((one) => `'${one}'`).join(", ")}`)
    // earendil-works/pi#424
    if (typeof data === "string" && data.length > IMAGE_CHARS_MAX)
      return say(`${source}: image exceeds 5 MB maximum: ${data.length} bytes > ${IMAGE_CHARS_MAX} bytes`)
    return isImage(media_type, data)
      ? undefined
      : say(`${source}.data: Image does not match the provided media type ${String(media_type)}`)
  }
  return eachBlock(check)(body)
}

export const messagesImageRules: ReadonlyArray<Rule> = [
  {
    name: "a result is text and images",
    find: eachBlock((block, at) => {
      if (block["type"] !== "tool_result" || !Array.isArray(block["content"])) return undefined
      const other = block["content"].find(
        (part) => !isObject(part) || !["text", "image"].includes(String(part["type"]))
      )
      return other === undefined
        ? undefined
        : say(`${at}.tool_result.content: Input tag does not match the expected tags`)
    })
  },
  { name: "images are the user's, of a known format and size, and for a model that takes them", find: imageProblem }
]

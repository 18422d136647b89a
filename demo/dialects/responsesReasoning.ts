/** Reasoning in requests to OpenAI's Responses API without stored state. */
import { isObject, type Keys, listOf } from "./jsonKeys.ts"
import { firstOf, type Rule } from "./Rule.ts"
import { signatureOf } from "./signatures.ts"

export const itemsOf = ({ input }: Keys): ReadonlyArray<Keys> => listOf(input).filter(isObject)
export const typeOf = (item: Keys | undefined): string =>
  typeof item?.["type"] === "string" ? item["type"] : "message"

const textOf = (item: Keys): string =>
  listOf(item["summary"])
    .filter(isObject)
    .map(({ text }) => String(text))
    .join("\n")

/** The text in the encrypted content of an item of reasoning. */
export const sealedReasoning = (item: Keys): string => `${String(item["id"])}\n${textOf(item)}`

// https://platform.openai.com/docs/guides/reasoning#encrypted-reasoning-items, vercel/ai#7099, 0xPlaygrounds/rig#751
export const REASONING_RULES: ReadonlyArray<Rule> = [
  {
    name: "reasoning brings its encrypted content, since nothing is stored",
    find: (body) =>
      firstOf(itemsOf(body), (item) =>
        typeOf(item) === "reasoning" && body["store"] === false && typeof item["encrypted_content"] !== "string"
          ? {
              message: `Item with id '${String(item["id"])}' not found. Items are not persisted when \`store\` is set to false. Try again with \`store\` set to true, or remove this item from your input.`,
              status: 404,
              param: "input"
            }
          : undefined
      )
  },
  {
    name: "reasoning comes back as it was sent, to the model that it is of",
    find: (body) =>
      firstOf(itemsOf(body), (item) =>
        typeOf(item) === "reasoning" &&
        typeof item["encrypted_content"] === "string" &&
        item["encrypted_content"] !== signatureOf(body["model"], sealedReasoning(item))
          ? {
              message: `The encrypted content for item ${String(item["id"])} could not be verified. Reason: Encrypted content could not be decrypted or parsed.`,
              code: "invalid_encrypted_content"
            }
          : undefined
      )
  },
  {
    name: "reasoning is followed by what it led to",
    find: (body) => {
      const items = itemsOf(body)
      return firstOf(items, (item, index) => {
        if (typeOf(item) !== "reasoning") return undefined
        const next = items[index + 1]
        const isFollowed =
          next !== undefined &&
          (typeOf(next) !== "message" || next["role"] === "assistant") &&
          typeOf(next) !== "function_call_output"
        return isFollowed
          ? undefined
          : {
              message: `Item '${String(item["id"])}' of type 'reasoning' was provided without its required following item.`,
              param: "input"
            }
      })
    }
  },
  {
    name: "a call with its item's id comes with its reasoning",
    find: (body) => {
      const ids = new Set(itemsOf(body).map(({ id }) => id))
      return firstOf(itemsOf(body), (item) => {
        const { id } = item
        if (typeOf(item) !== "function_call" || typeof id !== "string") return undefined
        const needed = /^fc_(.+)_\d+$/u.exec(id)?.[1]
        return needed === undefined || ids.has(`rs_${needed}`)
          ? undefined
          : {
              message: `Item '${id}' of type 'function_call' was provided without its required 'reasoning' item: 'rs_${needed}'.`,
              param: "input"
            }
      })
    }
  }
]

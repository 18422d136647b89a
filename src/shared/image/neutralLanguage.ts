/**
 * The words of a skill that only one provider's models are trained on, or that name one: a skill runs on whichever model an agent has. And characters
 * that a person who reads the skill does not see. Pure.
 */
import type { SkillSpec } from "#schema/Skill.ts"
import { hiddenProblem, hiddenValues } from "./hiddenCharacters.ts"

/** Names of models and providers, and the markup of their prompts. */
const WORDS: ReadonlyArray<readonly [RegExp, string]> = [
  [
    /\b(?:claude|anthropic|chatgpt|openai|gpt-?\d|gemini|llama|mistral|deepseek|qwen|grok|kimi)\b/iu,
    "names a model or a provider"
  ],
  [/<\/?(?:antml:|function_calls|invoke|tool_use|tool_call|thinking|scratchpad)/iu, "is markup of one provider"],
  [/<\|[a-z_]{1,32}\|>|\[\/?INST\]|<<\/?SYS>>/iu, "is markup of one provider"],
  [/\b(?:tool_choice|function_call|cache_control|system_fingerprint|response_format)\b/u, "is a parameter of one API"],
  [/\bultrathink\b|\bas an? (?:AI )?language model\b/iu, "is a phrase for particular models"]
]

/** Where each text is, for a person to find it. */
const textsOf = ({ contract, description, states }: SkillSpec): ReadonlyArray<readonly [at: string, text: string]> => [
  ["description", description],
  ...(contract === undefined
    ? []
    : ([
        ["does", contract.does],
        ["does_not", contract.does_not]
      ] as const)),
  ...Object.entries(states).flatMap(([name, { objective }]) =>
    objective === undefined ? [] : [[`the objective of ${name}`, objective] as const]
  )
]

export const languageProblems = (spec: SkillSpec): ReadonlyArray<string> => {
  const texts = textsOf(spec)
  const named = texts.flatMap(([at, text]) => {
    const hidden = hiddenProblem(text)
    const words = WORDS.flatMap(([word, why]) => {
      const found = word.exec(text)
      return found === null ? [] : [`${at}: "${found[0]}" ${why}`]
    })
    return hidden === undefined ? words : [`${at}: ${hidden}`, ...words]
  })
  return [...named, ...hiddenValues(spec, new Set(texts.map(([, text]) => text)))]
}

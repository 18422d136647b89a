/** The words of an answer that are for people, by the marks of every family, whole and in pieces. */
import { assert, describe, it } from "@effect/vitest"
import { makeSpokenText, spokenWords, withoutThoughts } from "#src/shared/model/spokenText.ts"

/** `SECRET` stands for thoughts of several words. */
const SECRET = "The user seems angry; I hide that."

const THOUGHTS: ReadonlyArray<readonly [family: string, text: string, said: string]> = [
  ["think", `<think>${SECRET}</think>Hello!`, "Hello!"],
  ["thinking, in capitals", `<THINKING>${SECRET}</Thinking>\n\nHello!`, "Hello!"],
  ["thought", `\n<thought>${SECRET}</thought>Hello!`, "Hello!"],
  ["reasoning with attributes", `<reasoning effort="high" id='1'>${SECRET}</reasoning >Hello!`, "Hello!"],
  ["a namespace", `<seed:think>${SECRET}</seed:think>Hello!`, "Hello!"],
  ["antThinking", `<antThinking>${SECRET}</antThinking>Hello!`, "Hello!"],
  ["another end of the family", `<thinking>${SECRET}</think>Hello!`, "Hello!"],
  ["brackets", `[THINK]${SECRET}[/THINK]Hello!`, "Hello!"],
  ["channels of Gemma", `<|channel>thought\n${SECRET}<channel|>Hello!`, "Hello!"],
  ["an empty channel of Gemma", "<|channel>thought\n<channel|>Hello!", "Hello!"],
  [
    "harmony",
    `<|channel|>analysis<|message|>${SECRET}<|end|><|start|>assistant<|channel|>final<|message|>Hello!<|return|>`,
    "Hello!"
  ],
  [
    "harmony whose beginning stood in the prompt",
    `${SECRET}<|end|><|start|>assistant<|channel|>final<|message|>Hello!`,
    "Hello!"
  ],
  [
    "harmony without an end of its thoughts",
    `<|channel|>analysis<|message|>${SECRET}<|start|>assistant<|channel|>final<|message|>Hello!`,
    "Hello!"
  ],
  ["tokens", `<|begin_of_thought|>${SECRET}<|end_of_thought|>Hello!`, "Hello!"],
  ["tokens of Cohere", `<|START_THINKING|>${SECRET}<|END_THINKING|>Hello!`, "Hello!"],
  ["triangles", `◁think▷${SECRET}◁/think▷Hello!`, "Hello!"],
  ["unused tokens", `<unused94>thought\n${SECRET}<unused95>Hello!`, "Hello!"],
  ["thoughts alone", `<think>${SECRET}`, ""],
  ["thoughts between words", `Let me see. <think>${SECRET}</think> Hello!`, "Let me see. Hello!"],
  ["thoughts in the middle of a sentence", `Well <think>${SECRET}</think> hello!`, "Well hello!"],
  ["several thoughts", `<think>${SECRET}</think>One. <think>${SECRET}</think>Two.`, "One. Two."],
  ["thoughts that are cut off behind words", `Let me see. <think>${SECRET}`, "Let me see. "],
  ["only the end, within a line", `${SECRET}</think>Hello!`, "Hello!"],
  ["only the end, in a line", `${SECRET}\n</think>\n\nHello!`, "Hello!"],
  ["only the end of brackets", `${SECRET}[/THINK]Hello!`, "Hello!"],
  ["an empty pair behind words", "Hello. <think>\n\n</think>\n\nDone.", "Hello. Done."]
]

const WORDS: ReadonlyArray<readonly [what: string, text: string]> = [
  ["plain words", "a < b, a[0] and <b>bold</b> 1 < 2"],
  ["an end that is spoken about", "Write </think> there."],
  ["a pair that is spoken about", "Say <think>x</think>."],
  ["a pair over lines that is spoken about", "Between\n<think>\nand\n</think>\nit thinks."],
  ["a tag that is spoken about", "Models begin with the <think> tag, and some end without one."],
  ["a pair in code", `Write \`<think>${SECRET}</think>\` there.`],
  ["a pair in a fence", `So:\n\`\`\`xml\n<think>${SECRET}</think>\n\`\`\`\nDone.`],
  ["a call in a fence", 'So:\n```\n<tool_call>\n{"name":"a"}\n</tool_call>\n```'],
  ["a call that is spoken about", "Qwen writes a <tool_call> tag."],
  ["a link and a list", "[think about it](https://example.org) [x] [T"],
  ["a beginning at the end", "It ends with <thin"]
]

const CALLS: ReadonlyArray<readonly [family: string, text: string]> = [
  ["Qwen", 'Sure.\n<tool_call>\n{"name":"a"}\n</tool_call>'],
  ["Qwen Coder", "Sure.\n<function=choir-exec>\n<parameter=command>\nls\n</parameter>\n</function>"],
  ["MiniMax", 'Sure.\n<minimax:tool_call>\n<invoke name="a">'],
  ["Claude", 'Sure.\n<function_calls>\n<invoke name="a">'],
  ["Mistral", 'Sure.\n[TOOL_CALLS][{"name":"a"}]'],
  ["Kimi", "Sure.\n<|tool_calls_section_begin|><|tool_call_begin|>functions.a:0"],
  ["DeepSeek", "Sure.\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function"],
  ["Gemma", "Sure.\n<|tool_call>call:a{}<tool_call|>"],
  ["Llama", 'Sure.\n<|python_tag|>{"name":"a"}'],
  ["harmony", "Sure.\n<|channel|>commentary to=functions.a <|constrain|>json<|message|>{}<|call|>"],
  ["Groq", 'Sure.\n<tool-use>{"tool_calls":[]}</tool-use>']
]

/** What is shown in the end of pieces, and everything that was shown on the way. */
const inPieces = (pieces: ReadonlyArray<string>) => {
  const spoken = makeSpokenText("left out")
  let shown = ""
  let ever = ""
  const hear = ({ isVoid, text }: { readonly text: string; readonly isVoid: boolean }) => {
    shown = (isVoid ? "" : shown) + text
    ever += text
  }
  for (const piece of pieces) hear(spoken.take(piece))
  hear(spoken.end())
  return { shown, ever }
}

describe("the words of an answer", () => {
  it.each(THOUGHTS)("are without thoughts: %s", (_, text, said) => {
    assert.strictEqual(withoutThoughts(text), said)
  })

  it.each(WORDS)("keep %s", (_, text) => {
    assert.strictEqual(withoutThoughts(text), text)
    assert.deepStrictEqual(spokenWords(text), { text, hasCall: false })
  })

  it.each(CALLS)("are without a call that is written as text: %s", (_, text) => {
    assert.deepStrictEqual(spokenWords(text), { text: "Sure.\n", hasCall: true })
    assert.strictEqual(withoutThoughts(text), text)
  })

  it.each([...THOUGHTS, ...WORDS, ...CALLS].map(([what, text]) => [what, text] as const))(
    "are the same in pieces, wherever they are cut: %s",
    (what, text) => {
      const { text: whole } = spokenWords(text)
      const cuts = Array.from({ length: text.length + 1 }, (_, cut) => [text.slice(0, cut), text.slice(cut)])
      for (const pieces of [...cuts, text.split("")]) {
        const { ever, shown } = inPieces(pieces)
        assert.strictEqual(shown, whole, JSON.stringify(pieces))
        // Where only the end of thoughts comes, nobody can know them before it.
        if (!/only the end|beginning stood/u.test(what) && !whole.includes(SECRET)) assert.notInclude(ever, "angry")
      }
    }
  )

  it("cost what their characters cost, whatever marks they seem to begin", () => {
    const began = performance.now()
    for (const mark of ["<", "<a", "[t", "`", "◁", "<think>", "</think>", "<|channel|>", "a <think>b</think> "]) {
      spokenWords(mark.repeat(50_000))
      const spoken = makeSpokenText("left out")
      for (let count = 0; count < 10_000; count++) spoken.take(mark)
      spoken.end()
    }
    assert.isBelow(performance.now() - began, 8000)
  })
})

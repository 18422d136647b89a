import { assert, describe, it } from "@effect/vitest"
import { ForgetWords, isDistinct } from "#src/choird/memory/forgetWords.ts"

const event = (payload: unknown) => ({ payload }) as never

describe("words to forget", () => {
  it("are found whatever their case and spaces, and not within longer words", () => {
    const words = new ForgetWords(["Ann Lee", "c++"])
    for (const text of ["ann lee", "(Ann\n  Lee)", "an answer of ANN LEE.", "I write C++.", "c++17"])
      assert.isTrue(words.in(text), text)
    for (const text of ["annlee", "Joann Lee", "Ann Leeds", "c+", ""]) assert.isFalse(words.in(text), text)
  })

  it("are found in any text, number or field name of an event", () => {
    const words = new ForgetWords(["4711", "rex"])
    assert.isTrue(words.inEvent(event({ tool_calls: [{ input: { pin: 4711 } }] })))
    assert.isTrue(words.inEvent(event({ output: { dogs: { rex: true } } })))
    assert.isFalse(words.inEvent(event({ text: "47112 and trexes", n: [1, null, false] })))
  })

  it("are compared as characters, never as a pattern", () => {
    assert.isFalse(new ForgetWords([".*"]).in("anything"))
    assert.isTrue(new ForgetWords(["a.b(c"]).in("see a.b(c)"))
  })

  it("match nothing when there are none", () => {
    assert.isFalse(new ForgetWords([]).inEvent(event({ text: "anything" })))
    assert.isFalse(new ForgetWords(["  "]).in("anything"))
  })
})

describe("isDistinct", () => {
  it("holds for values that mean themselves", () => {
    for (const text of ["Her birthday is in May", "4711", "+49 30 1234567"]) assert.isTrue(isDistinct(text), text)
    for (const text of ["dark", "yes", "in Lyon", "a b c"]) assert.isFalse(isDistinct(text), text)
  })
})

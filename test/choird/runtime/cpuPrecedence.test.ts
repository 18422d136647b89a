import { assert, describe, it } from "@effect/vitest"
import { type CpuUse, steppingBack, useAfter } from "#src/choird/runtime/cpuPrecedence.ts"

const SECOND_US = 1_000_000

const using = (recents: Readonly<Record<string, number>>) =>
  new Map(Object.entries(recents).map(([name, recent]): [string, CpuUse] => [name, { used_us: 0, recent }]))
const back = (recents: Readonly<Record<string, number>>) => [...steppingBack(using(recents))].sort()

describe("useAfter", () => {
  it("comes close to the processors that a group takes, and forgets half in five seconds", () => {
    let use: CpuUse | undefined
    for (let second = 0; second <= 60; second++) use = useAfter(use, second * SECOND_US, 1000)
    assert.closeTo(use?.recent ?? 0, 1, 0.001)
    assert.closeTo(useAfter(use, use?.used_us ?? 0, 5000).recent, 0.5, 0.001)
  })

  it("says nothing of a group at the first look, and takes nothing from one whose count began again", () => {
    assert.strictEqual(useAfter(undefined, 5 * SECOND_US, 1000).recent, 0)
    assert.strictEqual(useAfter({ used_us: 5 * SECOND_US, recent: 0 }, 10, 1000).recent, 0)
  })
})

describe("steppingBack", () => {
  it("lets those that talk go before those that take all they may", () => {
    const talking = Object.fromEntries(["ada", "bea", "cyd"].map((name) => [name, 0.03]))
    const hungry = Object.fromEntries(Array.from({ length: 19 }, (_, at) => [`hungry${at}`, 0.09]))
    const names = back({ ...talking, ...hungry })
    for (const name of Object.keys(talking)) assert.notInclude(names, name)
    assert.isAtLeast(names.length, 15)
  })

  it("sends nobody back who has nobody to give way to", () => {
    assert.deepStrictEqual(back({}), [])
    assert.deepStrictEqual(back({ alone: 2, idle: 0 }), [])
    assert.deepStrictEqual(back({ first: 1, second: 1 }), [])
  })

  it("sends those back that work while another talks", () => {
    assert.deepStrictEqual(back({ works: 1.5, talks: 0.1 }), ["works"])
    assert.deepStrictEqual(back({ builds: 0.5, idle: 0, talks: 0.1, works: 0.8 }), ["builds", "works"])
  })
})

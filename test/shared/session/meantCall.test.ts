import { assert, describe, it } from "@effect/vitest"
import { callDigest } from "#src/shared/session/calls.ts"
import { isProposal, meantCall } from "#src/shared/session/meantCall.ts"

const EDIT = { change: [{ op: "remove", path: "/budgets/turn_max_steps" }], reason: "the default will do" }
const logged = (name: string, input: unknown) => ({ name, digest: callDigest(name, input) })

describe("the tool that a call means", () => {
  it.each(["choir-propose", "choir.propose"])("is one of its kind where a model proposes with %s", (name) => {
    assert.deepStrictEqual(meantCall({ name, input: { kind: "config_change", proposal: EDIT } }), {
      name: "choir-propose-config_change",
      input: EDIT
    })
    assert.deepStrictEqual(meantCall({ name, input: { kind: "tool" } }), { name: "choir-propose-tool", input: {} })
  })

  it.each([
    { name: "choir-fs-read", input: { path: "a" } },
    { name: "choir-propose-config_change", input: EDIT },
    { name: "choir-propose", input: { kind: "agent", proposal: EDIT } },
    { name: "choir-propose", input: { kind: "config_change", proposal: EDIT, change: [] } },
    { name: "choir-propose", input: "cut" }
  ])("is the one that it names in $name with $input", (call) => {
    assert.deepStrictEqual(meantCall(call), call)
  })
})

describe("a call of the log", () => {
  it.each([
    logged("choir-propose", { proposal: EDIT, kind: "config_change" }),
    logged("choir.propose", { kind: "config_change", proposal: EDIT }),
    logged("choir-propose-config_change", EDIT),
    logged("choir.propose.config_change", EDIT)
  ])("proposes its payload and no other as $name", (call) => {
    assert.isTrue(isProposal(call, "config_change", EDIT))
    assert.isFalse(isProposal(call, "config_change", { ...EDIT, reason: "another" }))
    assert.isFalse(isProposal(call, "tool", EDIT))
  })

  it("of another tool proposes nothing", () => {
    assert.isFalse(isProposal(logged("choir-fs-read", EDIT), "config_change", EDIT))
  })
})

import { assert, describe, it } from "@effect/vitest"
import { AgentId } from "#schema/Ids.ts"
import { ImageVersion } from "#schema/Image.ts"
import { IMAGES_KEPT, type TaggedImage, unusedTags } from "#src/choird/runtime/docker/imageNames.ts"

const version = (digit: number) => ImageVersion.make(String(digit).repeat(12))

const image = (agent_id: string, digit: number, base: string): TaggedImage => ({
  tag: `choir-agent-${agent_id}:${version(digit)}`,
  created: digit,
  labels: { "choir.agent": agent_id, "choir.base": base }
})

const base = (key: string, created: number): TaggedImage => ({
  tag: `choir-base:${key}`,
  created,
  labels: { "choir.base": key }
})

const source = { agent_id: AgentId.make("ada"), image_version: version(3), keep: [version(2)] }

describe("what of an installation's images is kept no longer", () => {
  it("are the versions of the agent that was built which are neither new nor kept, and no other agent's", () => {
    const images = [image("ada", 1, "k"), image("ada", 2, "k"), image("ada", 3, "k"), image("bob", 1, "k")]
    assert.deepStrictEqual(unusedTags(images, source, "k"), [`choir-agent-ada:${version(1)}`])
  })

  it("are bases that no image which stays was made on, beyond the newest", () => {
    const newest = Array.from({ length: IMAGES_KEPT }, (_, index) => base(`new${index}`, 100 + index))
    const old = [base("gone", 1), base("of-gone", 2), base("of-bob", 3), base("now", 4)]
    const images = [...old, ...newest, image("ada", 1, "of-gone"), image("ada", 3, "now"), image("bob", 9, "of-bob")]
    assert.deepStrictEqual(unusedTags(images, source, "now"), [
      `choir-agent-ada:${version(1)}`,
      "choir-base:of-gone",
      "choir-base:gone"
    ])
  })
})

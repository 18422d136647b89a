import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import * as Ids from "#schema/Ids.ts"

const CASES: ReadonlyArray<readonly [string, Schema.Top, ReadonlyArray<string>, ReadonlyArray<string>]> = [
  [
    "AgentId",
    Ids.AgentId,
    ["a", "agent-1", "a".repeat(40)],
    ["", "control", "A", "1a", "-a", "a_b", "a".repeat(41), "a\n"]
  ],
  ["ResourceName", Ids.ResourceName, ["control", "x-1"], ["", "X", "1x", "x.y", "x".repeat(41)]],
  ["SecretName", Ids.SecretName, ["a", "0a._-", "a".repeat(64)], ["", "-a", ".a", "A", "a/b", "a".repeat(65)]],
  [
    "SessionId",
    Ids.SessionId,
    ["0123456789abcdef", "zyxwvtsrqpnmkjhg"],
    ["0123456789ABCDEF", "i".repeat(16), "l".repeat(16), "o".repeat(16), "u".repeat(16), "0".repeat(15), "0".repeat(17)]
  ],
  ["JobName", Ids.JobName, ["a", "0", "a-b-", "9".repeat(40)], ["", "-a", "A", "a:b", "a".repeat(41)]],
  [
    "LaneId",
    Ids.LaneId,
    ["edge", "core:a", "core:0-x"],
    ["", "core", "core:", "core:-a", "core:A", "Edge", "edge ", "core:edge:"]
  ],
  ["CallId", Ids.CallId, ["0123456789abcdef-1-2-0", "-"], ["", "A", "a_b", "a".repeat(41)]],
  ["InboxId", Ids.InboxId, ["1", "999999999999999999"], ["0", "", "-1", "01", "1.0", "1e3", "1".repeat(19)]],
  ["SignalId", Ids.SignalId, ["7"], ["0", "x"]],
  ["Sha256", Ids.Sha256, ["0".repeat(64)], ["0".repeat(63), "G".repeat(64), "A".repeat(64)]],
  [
    "IsoInstant",
    Ids.IsoInstant,
    [
      "2026-01-02T03:04:05.678Z",
      "0001-01-01T00:00:00.000Z",
      "9999-12-31T23:59:59.999Z",
      "2024-02-29T00:00:00.000Z",
      "2000-02-29T00:00:00.000Z"
    ],
    [
      "2026-01-02T03:04:05Z",
      "2026-01-02T03:04:05.678+00:00",
      "now",
      "2026-99-99T99:99:99.999Z",
      "2026-13-01T00:00:00.000Z",
      "2026-00-01T00:00:00.000Z",
      "2026-01-00T00:00:00.000Z",
      "2026-01-32T00:00:00.000Z",
      "2026-04-31T00:00:00.000Z",
      "2026-02-30T00:00:00.000Z",
      "2026-02-29T00:00:00.000Z",
      "1900-02-29T00:00:00.000Z",
      "0000-01-01T00:00:00.000Z",
      "2026-01-01T24:00:00.000Z",
      "2026-01-01T00:60:00.000Z",
      "2026-01-01T00:00:60.000Z",
      "+010000-01-01T00:00:00.000Z"
    ]
  ]
]

describe("Ids", () => {
  for (const [name, schema, good, bad] of CASES)
    it(`tells what is a ${name}`, () => {
      const is = Schema.is(schema)
      for (const text of good) assert.isTrue(is(text), JSON.stringify(text))
      for (const text of bad) assert.isFalse(is(text), JSON.stringify(text))
    })

  it("leads from a job to its lane and back", () => {
    const job = Ids.JobName.make("refactor-auth")
    assert.strictEqual(Ids.coreLane(job), "core:refactor-auth")
    assert.strictEqual(Ids.jobOf(Ids.coreLane(job)), job)
    assert.isUndefined(Ids.jobOf(Ids.EDGE))
  })
})

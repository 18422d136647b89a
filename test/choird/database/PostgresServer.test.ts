import { assert, describe, it } from "@effect/vitest"
import { Option, Redacted } from "effect"
import { addressOf, problemOf, type ServerFacts } from "#src/choird/database/PostgresServer.ts"

const GOOD: ServerFacts = {
  version_num: 150_018,
  version: "15.18",
  encoding: "UTF8",
  standby: false,
  read_only: false,
  vector: "0.8.0",
  vector_available: "0.8.0",
  createrole: true,
  create: true
}
const shown = (url: string) =>
  Option.map(addressOf({ url: Redacted.make(url) }), (address) => `${address.user} ${address.toString()}`)

describe("PostgresServer", () => {
  it("finds nothing wrong with Postgres 15 and pgvector 0.7, installed or only available", () => {
    assert.isUndefined(problemOf(GOOD))
    assert.isUndefined(problemOf({ ...GOOD, version_num: 180_006, vector: "0.7.0" }))
    assert.isUndefined(problemOf({ ...GOOD, vector: null, vector_available: "1.0" }))
  })

  it("names what is wrong, the version first", () => {
    const tags = (
      [
        { version_num: 140_022, version: "14.22", vector: null },
        { encoding: "LATIN1", read_only: true },
        { encoding: "SQL_ASCII" },
        { standby: true, read_only: true, createrole: false },
        { read_only: true, create: false },
        { vector: null, vector_available: null },
        { vector: "0.6.2" },
        { vector: null, vector_available: "0.5.1" },
        { createrole: false },
        { create: false }
      ] satisfies ReadonlyArray<Partial<ServerFacts>>
    ).map((facts) => problemOf({ ...GOOD, ...facts })?._tag)
    assert.deepStrictEqual(tags, [
      "OldServer",
      "Encoding",
      "Encoding",
      "Standby",
      "ReadOnly",
      "NoVector",
      "OldVector",
      "OldVector",
      "NoCreaterole",
      "NoCreate"
    ])
  })

  it("reads the address of a URL without its password", () => {
    assert.deepStrictEqual(
      shown("postgres://choir:hunter2@db.example:6432/agents"),
      Option.some("choir db.example:6432/agents")
    )
    assert.deepStrictEqual(shown("postgresql://choir@localhost"), Option.some("choir localhost:5432/choir"))
    assert.deepStrictEqual(
      shown("postgres:///agents?host=/run/postgresql&port=5433&user=me"),
      Option.some("me /run/postgresql:5433/agents")
    )
  })

  it("refuses a URL of something else", () => {
    for (const url of ["", "localhost", "https://choir@db/agents", "postgres://a b:99999999"]) {
      assert.isTrue(Option.isNone(addressOf({ url: Redacted.make(url) })), url)
    }
  })
})

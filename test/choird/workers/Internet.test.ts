import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { addressesIn } from "#src/choird/workers/Internet.ts"

const failed = (code: string) => Result.fail(code)
const found = (...addresses: ReadonlyArray<string>) => Result.succeed(addresses)

describe("a name's addresses", () => {
  it("are those of both answers, and none where a name server says so", () => {
    assert.deepStrictEqual(addressesIn([found("192.0.2.1"), failed("ENODATA")]), ["192.0.2.1"])
    assert.deepStrictEqual(addressesIn([found("192.0.2.1"), failed("ETIMEOUT")]), ["192.0.2.1"])
    assert.deepStrictEqual(addressesIn([failed("ENOTFOUND"), failed("ENOTFOUND")]), [])
  })

  it("are not known where no name server answers", () => {
    for (const code of ["ETIMEOUT", "ECONNREFUSED", "ESERVFAIL", "EREFUSED"])
      assert.isUndefined(addressesIn([failed(code), failed(code)]), code)
    assert.isUndefined(addressesIn([failed("ENODATA"), failed("ETIMEOUT")]))
  })
})

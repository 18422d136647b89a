import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { EGRESS_ADDRESSES_MAX, makeAllowedHosts } from "#src/choird/runtime/docker/AllowedHosts.ts"

/** Names with answers that a test changes. */
const world = (allow: ReadonlyArray<string>, answers: Map<string, ReadonlyArray<string>>) =>
  makeAllowedHosts((name) => Effect.sync(() => answers.get(name) ?? []), allow)

const opened = (hosts: ReturnType<typeof makeAllowedHosts>) =>
  hosts.allowed().map(({ address, is_written, port }) => `${address}:${port}${is_written ? " written" : ""}`)

describe("AllowedHosts", () => {
  it.effect("opens what names mean and what is written, and tells containers the newest answers", () =>
    Effect.gen(function* () {
      const answers = new Map([["a.test", ["1.1.1.1", "1.0.0.1", "1.1.1.1"]]])
      const hosts = world(["a.test", "a.test:22", "10.0.0.5:8080"], answers)
      assert.deepStrictEqual([opened(hosts), hosts.hosts()], [["10.0.0.5:8080 written"], []])
      yield* hosts.refresh
      const all = ["1.1.1.1:443", "1.0.0.1:443", "1.1.1.1:22", "1.0.0.1:22", "10.0.0.5:8080 written"]
      assert.deepStrictEqual(opened(hosts), all)
      assert.deepStrictEqual(hosts.hosts(), ["a.test:1.1.1.1", "a.test:1.0.0.1"])
      answers.set("a.test", ["9.9.9.9"])
      yield* hosts.refresh
      // Containers that run were told the others.
      assert.deepStrictEqual(opened(hosts).slice(0, 3), ["1.1.1.1:443", "1.0.0.1:443", "9.9.9.9:443"])
      assert.deepStrictEqual([hosts.hosts(), hosts.problems()], [["a.test:9.9.9.9"], []])
    })
  )

  it.effect("leaves out every address that is not public, and says so (rebinding)", () =>
    Effect.gen(function* () {
      const inside = ["10.0.0.1", "127.0.0.1", "169.254.169.254", "172.16.9.9", "192.168.1.1", "100.64.0.1", "0.0.0.0"]
      const odd = ["224.0.0.1", "::1", "::ffff:10.0.0.1", "198.18.0.1", "255.255.255.255", "x; -j ACCEPT"]
      const hosts = world(["a.test"], new Map([["a.test", [...inside, ...odd]]]))
      yield* hosts.refresh
      assert.deepStrictEqual([opened(hosts), hosts.hosts()], [[], []])
      assert.match(hosts.problems().join(), /a\.test .* 10\.0\.0\.1, which is not public/u)
      const mixed = world(["a.test"], new Map([["a.test", ["10.0.0.1", "1.1.1.1"]]]))
      yield* mixed.refresh
      assert.deepStrictEqual([opened(mixed), mixed.problems().length], [["1.1.1.1:443"], 1])
    })
  )

  it.effect("keeps what it knew while nobody answers, and bounds what a name may open", () =>
    Effect.gen(function* () {
      const answers = new Map<string, ReadonlyArray<string>>([["a.test", ["1.1.1.1"]]])
      const hosts = world(["a.test"], answers)
      yield* hosts.refresh
      answers.delete("a.test")
      yield* hosts.refresh
      assert.deepStrictEqual([hosts.hosts(), hosts.problems().length], [["a.test:1.1.1.1"], 1])
      answers.set(
        "a.test",
        Array.from({ length: EGRESS_ADDRESSES_MAX + 20 }, (_, index) => `1.2.3.${index}`)
      )
      yield* hosts.refresh
      assert.strictEqual(hosts.allowed().length, EGRESS_ADDRESSES_MAX)
      assert.notInclude(opened(hosts).join(), "1.1.1.1:443")
    })
  )
})

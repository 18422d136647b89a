import { networkInterfaces, type NetworkInterfaceInfo } from "node:os"
import { assert, describe, it } from "@effect/vitest"
import { isGlobalAddress } from "#src/choird/workers/WebDialer.ts"
import { isOwnAddress } from "#src/choird/workers/ownAddress.ts"

const at = (address: string): NetworkInterfaceInfo => {
  const rest = { address, netmask: "", mac: "00:00:00:00:00:00", internal: false, cidr: null }
  return address.includes(":") ? { ...rest, family: "IPv6", scopeid: 0 } : { ...rest, family: "IPv4" }
}

/** Interfaces as an ordinary host has them: loopback of both families, and one card with all that it may have. */
const HOST = {
  lo: [at("127.0.0.1"), at("::1")],
  eth0: [
    at("203.0.114.7"),
    at("10.0.0.5"),
    at("2a00:1:2:3::7"),
    at("fd12:3456:789a:1::7"),
    at("fe80::1ff:fe23:4567:890a")
  ]
}

/** Sites of the public network, some of them neighbours of this host. */
const STRANGERS = [
  ..."8.8.8.8 1.1.1.1 93.184.216.34 203.0.114.6 203.0.114.8 126.255.255.255 128.0.0.0".split(" "),
  ..."2606:4700::1111 2a00:1:2:2:ffff:ffff:ffff:ffff 2a00:1:2:4:: 2a00:1:2:4::7 2001:4860:4860::8888".split(" ")
]

describe("an address of this machine", () => {
  it.each([
    ..."127.0.0.1 127.255.255.254 0.0.0.0 ::1 :: 203.0.114.7 10.0.0.5".split(" "),
    ..."2a00:1:2:3::7 2a00:1:2:3:: 2a00:1:2:3:ffff:ffff:ffff:ffff fd12:3456:789a:1::8 fe80::1 fe80::1%eth0".split(" ")
  ])("is %s: loopback, an interface's, or of an interface's IPv6 network", (address) => {
    assert.isTrue(isOwnAddress(address, HOST))
  })

  it.each([
    ..."::ffff:203.0.114.7 ::ffff:cb00:7207 ::203.0.114.7 ::ffff:0:203.0.114.7 64:ff9b::cb00:7207 2002:cb00:7207::1".split(
      " "
    ),
    ..."::ffff:127.0.0.1 64:ff9b::7f00:1 2002:7f00:1:: ::ffff:0.0.0.0".split(" ")
  ])("is %s, which holds one of IPv4", (address) => {
    assert.isTrue(isOwnAddress(address, HOST))
  })

  it.each(STRANGERS)("is not %s", (address) => {
    assert.isFalse(isOwnAddress(address, HOST))
    assert.isTrue(isGlobalAddress(address))
  })

  it("of one family makes none of the other this machine's", () => {
    const every = [
      ..."::1 fe80::1 fd00::1 2a00:1:2:3::7 ::ffff:203.0.114.7 64:ff9b::a00:1".split(" "),
      "127.0.0.1",
      "10.0.0.5"
    ]
    for (const one of every)
      for (const address of STRANGERS.filter((each) => !each.startsWith("2a00")))
        assert.isFalse(isOwnAddress(address, { only: [at(one)] }), `${address} with ${one}`)
  })

  it("is not a text that is something else", () => {
    for (const text of ["here.test", "", "203.0.114.7:80", "[::1]", "203.0.114", "::1::"])
      assert.isFalse(isOwnAddress(text, HOST), text)
  })

  it("is each of the interfaces that this machine has, and no other site", () => {
    const own = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
    assert.isNotEmpty(own)
    for (const { address } of own) assert.isTrue(isOwnAddress(address), address)
    for (const address of ["8.8.8.8", "93.184.216.34", "2606:4700::1111"])
      assert.isFalse(isOwnAddress(address), address)
  })
})

import { assert, describe, it } from "@effect/vitest"
import { egressChains, egressCommands, egressJumps, egressRules, nameserversIn } from "#src/shared/wire/egress.ts"

const plan = { bridge: "choir-0123abcd", nameservers: ["10.1.1.53"], choird_port: 9400 }

/** What becomes of a new connection, by the first rule that fits. */
const verdict = (chain: string, ip: string, port: number, protocol = "tcp", rules = egressRules(plan)) => {
  const bits = (address: string) => address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0)
  for (const rule of rules.split("\n")) {
    if (!rule.startsWith(`-A ${chain} `) || rule.includes("ESTABLISHED")) continue
    const [, range = "0.0.0.0", size = "0"] = /-d ([\d.]+)\/(\d+)/u.exec(rule) ?? []
    const step = 2 ** (32 - Number(size))
    const dport = /--dport (\d+)/u.exec(rule)?.[1]
    const fits =
      Math.floor(bits(ip) / step) === Math.floor(bits(range) / step) &&
      (dport === undefined || Number(dport) === port) &&
      (/-p (\w+)/u.exec(rule)?.[1] ?? protocol) === protocol
    if (fits) return /-j (\w+)$/u.exec(rule)?.[1]
  }
  return "RETURN"
}

describe("egressRules", () => {
  const { host, out } = egressChains(plan.bridge)

  it("let agents out to the public network and to the name servers, and nowhere else (D22)", () => {
    for (const ip of ["1.1.1.1", "8.8.8.8", "93.184.216.34", "172.32.0.1", "100.128.0.1", "223.255.255.255"])
      assert.strictEqual(verdict(out, ip, 443), "RETURN", ip)
    for (const ip of ["10.0.0.1", "10.1.1.53", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254"])
      assert.strictEqual(verdict(out, ip, 443), "DROP", ip)
    for (const ip of ["127.0.0.1", "0.0.0.0", "100.64.0.1", "198.19.0.1", "224.0.0.1", "255.255.255.255"])
      assert.strictEqual(verdict(out, ip, 443), "DROP", ip)
    assert.strictEqual(verdict(out, "10.1.1.53", 53, "udp"), "RETURN")
    assert.strictEqual(verdict(out, "10.1.1.54", 53, "udp"), "DROP")
  })

  it("let agents in to this host for names and for choird's own port alone", () => {
    assert.strictEqual(verdict(host, "172.18.0.1", 9400), "RETURN")
    assert.strictEqual(verdict(host, "10.1.1.53", 53, "udp"), "RETURN")
    for (const port of [22, 80, 5432]) assert.strictEqual(verdict(host, "172.18.0.1", port), "DROP")
    assert.notInclude(egressRules({ ...plan, choird_port: undefined }), "9400")
  })

  it("let agents out to what is listed alone, and to this host for addresses that the operator wrote (D22)", () => {
    const allowed = [
      { address: "1.1.1.1", port: 443, is_written: false },
      { address: "10.0.0.5", port: 8080, is_written: true }
    ]
    const rules = egressRules({ ...plan, allowed })
    const out_of = (ip: string, port: number, protocol?: string) => verdict(out, ip, port, protocol, rules)
    assert.deepStrictEqual([out_of("1.1.1.1", 443), out_of("10.0.0.5", 8080)], ["RETURN", "RETURN"])
    for (const [ip, port] of [
      ["1.1.1.1", 80],
      ["1.1.1.2", 443],
      ["10.0.0.5", 443],
      ["10.1.1.53", 53]
    ] as const)
      assert.strictEqual(out_of(ip, port), "DROP", `${ip}:${port}`)
    assert.deepStrictEqual([out_of("1.1.1.1", 443, "udp"), out_of("10.1.1.53", 53, "udp")], ["DROP", "DROP"])
    const into = (ip: string, port: number, protocol?: string) => verdict(host, ip, port, protocol, rules)
    assert.deepStrictEqual([into("172.18.0.1", 9400), into("10.0.0.5", 8080)], ["RETURN", "RETURN"])
    assert.deepStrictEqual([into("1.1.1.1", 443), into("10.1.1.53", 53, "udp")], ["DROP", "DROP"])
  })

  it("take the name servers that a container could ask", () => {
    const text =
      "# nameserver 9.9.9.9\nnameserver 10.1.1.53\nnameserver 127.0.0.53\nnameserver ::1\nnameserver x; -j ACCEPT\n"
    assert.deepStrictEqual(nameserversIn(text), ["10.1.1.53"])
  })

  it("are printed as commands that may be run twice", () => {
    const text = egressCommands(plan)
    assert.include(text, egressRules(plan))
    for (const rule of egressJumps(plan.bridge))
      assert.include(text, `iptables -t mangle -C ${rule.join(" ")} || iptables -t mangle -I`)
    assert.isAtMost(Math.max(host.length, out.length), 28)
  })
})

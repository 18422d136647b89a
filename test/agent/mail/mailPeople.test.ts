/** The people in the headers of mails, as programs and people write them. */
import { assert, describe, it } from "@effect/vitest"
import { readHere } from "../../support/mailReader.ts"

const read = (headers: string) => readHere(Buffer.from(`${headers.replaceAll("\n", "\r\n")}\r\n\r\nx`))

describe("the sender of a mail", () => {
  it.each<readonly [what: string, header: string, name: string, address: string]>([
    ["a name with a comma in quotes", '"Lovelace, Ada" <ada@a.example>', "Lovelace, Ada", "ada@a.example"],
    ["a name with a comma without quotes", "Lovelace, Ada <ada@a.example>", "Lovelace, Ada", "ada@a.example"],
    [
      "a name with two commas without quotes",
      "Lovelace, Ada, Countess <ada@a.example>",
      "Lovelace, Ada, Countess",
      "ada@a.example"
    ],
    ["an encoded comma", "=?utf-8?Q?Gr=C3=BC=C3=9F=2C_Ada?= <ada@a.example>", "Grüß, Ada", "ada@a.example"],
    ["an encoded comma in quotes", '"=?utf-8?B?R3LDvMOfLCBBZGE=?=" <ada@a.example>', "Grüß, Ada", "ada@a.example"],
    ["a quotation mark in a name", String.raw`"Ada \"Al\" L." <ada@a.example>`, 'Ada "Al" L.', "ada@a.example"],
    ["a name behind the address", "ada@a.example (Ada Lovelace)", "Ada Lovelace", "ada@a.example"],
    ["a domain in letters", "Ada <ada@münchen.example>", "Ada", "ada@xn--mnchen-3ya.example"],
    ["a domain in letters of another script", "Ada <ada@例え.テスト>", "Ada", "ada@xn--r8jz45g.xn--zckzah"],
    ["a domain in ASCII for letters", "Ada <ada@xn--mnchen-3ya.example>", "Ada", "ada@xn--mnchen-3ya.example"],
    ["a domain with an ideographic dot", "Ada <ada@例え。example>", "Ada", "ada@xn--r8jz45g.example"],
    ["an account in letters", "Ada <jürgen@a.example>", "Ada", "jürgen@a.example"],
    ["an address of numbers", "Ada <ada@[192.0.2.1]>", "Ada", "ada@[192.0.2.1]"],
    ["a quoted account", '"Ada" <"ada lovelace"@a.example>', "Ada", '"ada lovelace"@a.example'],
    ["the first of a group", "Team: ada@a.example, bob@b.example;", "", "ada@a.example"]
  ])("is read with %s", async (_, header, name, address) => {
    const mail = await read(`From: ${header}`)
    assert.deepStrictEqual([mail.from_name, mail.from], [name, address])
  })
})

describe("the recipients of a mail", () => {
  it.each<readonly [what: string, header: string, addresses: ReadonlyArray<string>]>([
    ["a group", "Team: Ada <ada@a.example>, bob@b.example;", ["ada@a.example", "bob@b.example"]],
    [
      "groups and others",
      "Team: ada@a.example;, carol@c.example, More: dan@d.example;",
      ["ada@a.example", "carol@c.example", "dan@d.example"]
    ],
    ["an empty group", "undisclosed-recipients:;", []],
    [
      "names with commas",
      'Lovelace, Ada <ada@a.example>, "Builder, Bob" <bob@b.example>, carol@c.example',
      ["ada@a.example", "bob@b.example", "carol@c.example"]
    ],
    ["semicolons between them", "ada@a.example; bob@b.example", ["ada@a.example", "bob@b.example"]],
    [
      "a line for each",
      "Ada\n <ada@a.example>,\n Bob <bob@münchen.example>",
      ["ada@a.example", "bob@xn--mnchen-3ya.example"]
    ]
  ])("are read with %s", async (_, header, addresses) => {
    const mail = await read(`From: eve@e.example\nTo: ${header}`)
    assert.deepStrictEqual(mail.to, addresses)
  })
})

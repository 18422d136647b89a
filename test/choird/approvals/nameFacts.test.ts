import { assert, describe, it } from "@effect/vitest"
import { nameFacts } from "#src/choird/approvals/nameFacts.ts"

const files = (...paths: ReadonlyArray<string>) => paths.map((path) => ({ path }))
const added = (...paths: ReadonlyArray<string>) => {
  const before = files(
    "tools/mail.send.json",
    "skills/weekly-report.json",
    "skills/review/SKILL.md",
    "skills/review/a.md"
  )
  return nameFacts(files("tools/crm.list.json"), before, [...before, ...files(...paths)])
}

describe("the names of new tools and skills", () => {
  it("are told where a person may take one for another", () => {
    const TAKEN: ReadonlyArray<readonly [path: string, words: string]> = [
      [
        "tools/mail_send.json",
        "The name of the tool mail_send is easily mistaken for mail.send, which is another tool."
      ],
      [
        "tools/rnail.send.json",
        "The name of the tool rnail.send is easily mistaken for mail.send, which is another tool."
      ],
      ["tools/crm.l1st.json", "The name of the tool crm.l1st is easily mistaken for crm.list, which is another tool."],
      [
        "tools/choir_fs.read.json",
        "The name of the tool choir_fs.read is easily mistaken for choir.fs.read, which is another tool."
      ],
      [
        "tools/ch0lr.push.json",
        "The name of the tool ch0lr.push begins like the names of Choir's own tools, but it is not one of them."
      ],
      [
        "skills/weekly_report/SKILL.md",
        "The name of the skill weekly_report is easily mistaken for weekly-report, which is another skill."
      ],
      ["skills/revievv.json", "The name of the skill revievv is easily mistaken for review, which is another skill."],
      [
        "skills/tool_bui1der.json",
        "The name of the skill tool_bui1der is easily mistaken for tool-builder, which is another skill."
      ]
    ]
    for (const [path, words] of TAKEN) assert.deepStrictEqual(added(path), [words])
    // Two new ones, of which neither was there.
    assert.lengthOf(added("skills/one.two.json", "skills/one-two.json"), 2)
  })

  it("are not told of otherwise, nor are those that were there", () => {
    for (const path of [
      "tools/mail.list.json",
      "skills/monthly-report.json",
      "tools/mail.send/main.c",
      "skills/review/b.md"
    ])
      assert.deepStrictEqual(added(path), [])
    assert.deepStrictEqual(
      nameFacts([], files("tools/a.b.json", "tools/a_b.json"), files("tools/a_b.json", "tools/a.b.json")),
      []
    )
  })
})
